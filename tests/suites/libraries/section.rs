//! The critical section: one at a time on all cores, against interrupts, preemption and crashes.

use alloc::vec::Vec;
use core::cell::Cell;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use critical_section::{Mutex, with};
use magpie::arch::CoreId;
#[cfg(target_os = "none")]
use magpie::internals::arch::{gic, second_timer};
use magpie::sched::{self, JoinError, Priority, Spawn};
#[cfg(target_os = "none")]
use magpie::time::Instant;
use magpie::{machine, time};
#[cfg(target_os = "none")]
use magpie_boot::claim;
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

/// Two numbers that are always equal outside a section, and between which a section does something else.
static NUMBERS: Mutex<Cell<(u64, u64)>> = Mutex::new(Cell::new((0, 0)));

/// Adds one to both, in a section with another one inside. Whether they were equal.
fn add() -> bool {
    with(|section| {
        let numbers = NUMBERS.borrow(section);
        let (left, right) = numbers.get();
        numbers.set((left + 1, right));
        with(|inner| {
            let numbers = NUMBERS.borrow(inner);
            let (left, right) = numbers.get();
            numbers.set((left, right + 1));
        });
        let (now_left, now_right) = numbers.get();
        left == right && now_left == left + 1 && now_right == right + 1
    })
}

fn numbers() -> (u64, u64) {
    with(|section| NUMBERS.borrow(section).get())
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

kernel_test! {
    /// On every core two processes, which are preempted, woken and moved as ever.
    async fn no_change_is_lost() -> Outcome {
        let (begin, changes) = (numbers().0, amount("work", 20_000));
        let mut processes = Vec::new();
        for core in cores() {
            for pinned in [true, false] {
                let spawn = if pinned { Spawn::new().pinned(core) } else { Spawn::new() };
                processes.push(spawn.start(async move {
                    let mut are_equal = true;
                    for change in 0..changes {
                        are_equal &= add();
                        if change % 64 == 0 {
                            sched::yield_now().await;
                        }
                    }
                    are_equal
                })?);
            }
        }
        let all = processes.len() as u64 * changes;
        for process in processes {
            ensure!(process.await?, "somebody was in another's section");
        }
        ensure_eq!(numbers(), (begin + all, begin + all), "changes");
        Ok(())
    }
}

/// How many interrupts have come, and in how many of them the numbers were not equal.
static INTERRUPTS: AtomicU64 = AtomicU64::new(0);
static BROKEN: AtomicU64 = AtomicU64::new(0);

#[cfg(target_os = "none")]
fn on_interrupt() {
    second_timer::disarm();
    if !add() {
        BROKEN.fetch_add(1, Ordering::Relaxed);
    }
    INTERRUPTS.fetch_add(1, Ordering::Release);
}

/// Interrupts its core again and again, and is in sections meanwhile. How many interrupts it has had.
#[cfg(target_os = "none")]
async fn is_interrupted(interrupts: u64) -> Result<u64, Failure> {
    gic::enable_own(second_timer::INTERRUPT);
    let mut changes = 0;
    for number in 0..interrupts {
        let before = INTERRUPTS.load(Ordering::Acquire);
        // At another place of a section each time.
        second_timer::arm(Instant::now().ticks() + number % 97);
        while INTERRUPTS.load(Ordering::Acquire) == before {
            ensure!(add(), "an interrupt was handled in a section");
            changes += 1;
        }
        sched::yield_now().await;
    }
    Ok(changes)
}

#[cfg(not(target_os = "none"))]
async fn is_interrupted(_: u64) -> Result<u64, Failure> {
    Ok(0)
}

kernel_test! {
    /// The handler waits for sections of other cores, and never for one of its own.
    #[machine("device interrupts")]
    async fn interrupts_do_not_wait_for_ever() -> Outcome {
        #[cfg(target_os = "none")]
        ensure!(claim::claim(second_timer::INTERRUPT, on_interrupt), "somebody else has claimed a device");
        let (begin, interrupts) = (numbers().0, amount("work", 500));
        let before = INTERRUPTS.load(Ordering::Acquire);
        let mut processes = Vec::new();
        for core in cores() {
            processes.push(Spawn::new().pinned(core).start(is_interrupted(interrupts))?);
        }
        let mut changes = 0;
        for process in processes {
            changes += process.await??;
        }
        let came = INTERRUPTS.load(Ordering::Acquire) - before;
        ensure!(came > 0, "no interrupt came");
        ensure_eq!(BROKEN.load(Ordering::Relaxed), 0, "interrupts that came into a section");
        ensure_eq!(numbers(), (begin + changes + came, begin + changes + came), "changes");
        Ok(())
    }
}

kernel_test! {
    /// What is urgent and woken in a section waits for its end, and for no more.
    #[machine("preemption")]
    async fn nothing_is_preempted_in_a_section() -> Outcome {
        static RAN: AtomicBool = AtomicBool::new(false);
        let core = CoreId::BOOT;
        let process = Spawn::new().pinned(core).start(async move {
            let urgent = Spawn::new().priority(Priority::High).pinned(core);
            let (urgent, ran_inside) = with(|_| {
                let urgent = urgent.start(async { RAN.store(true, Ordering::Release) });
                // Longer than two slices.
                let end = time::Instant::now() + Duration::from_millis(5);
                while time::Instant::now() < end {}
                (urgent, RAN.load(Ordering::Acquire))
            });
            let ran_after = RAN.load(Ordering::Acquire);
            urgent.map(|urgent| (urgent, ran_inside, ran_after))
        });
        let (urgent, ran_inside, ran_after) = process?.await??;
        ensure!(!ran_inside, "it ran in the section");
        ensure!(ran_after, "it did not run at the section's end");
        urgent.await?;
        Ok(())
    }
}

kernel_test! {
    /// Its process ends alone, others enter, and interrupts come.
    #[machine("crashes")]
    async fn a_section_ends_with_its_process() -> Outcome {
        for core in cores() {
            let fails = [
                Spawn::new().pinned(core).start(async {
                    with(|_| assert!(!black_box(true), "in a section, on purpose"));
                }),
                Spawn::new().pinned(core).start(async {
                    with(|_| with(|_| assert!(!black_box(true), "in a section in a section, on purpose")));
                }),
                Spawn::new().pinned(core).start(async {
                    let nowhere = black_box(8_usize) as *const u64;
                    // SAFETY: deliberately not: nothing is mapped there, and the process is to be ended for it.
                    with(|_| black_box(unsafe { nowhere.read_volatile() }));
                }),
            ];
            for process in fails {
                ensure!(matches!(process?.await, Err(JoinError::Crashed)), "it has not crashed");
                // There, too: the timer's interrupt wakes it.
                let next = Spawn::new().pinned(core).start(async {
                    time::sleep(Duration::from_millis(1)).await;
                    add()
                });
                ensure!(next?.await?, "somebody was in another's section");
            }
        }
        Ok(())
    }
}

/// Does not come back: it runs out of stack in the application's own code, or in the heap's.
#[inline(never)]
fn allocates_deeper(depth: u64, bytes: usize) -> u64 {
    let block = black_box(alloc::vec![depth as u8; bytes]);
    if black_box(depth) == u64::MAX {
        0
    } else {
        allocates_deeper(depth + 1, bytes) + u64::from(block[bytes / 2])
    }
}

kernel_test! {
    /// Most of the stack's last part is the heap's code, which holds a lock there.
    #[machine("crashes")]
    async fn a_stack_may_run_out_in_the_kernels_code_in_a_section() -> Outcome {
        for round in 0..amount("work", 20_000) / 1000 {
            // From large blocks' code to that of small ones.
            for bytes in [5000, 20_000, 700] {
                let overflows = sched::spawn(async move { with(|_| allocates_deeper(round, bytes)) });
                ensure_eq!(overflows?.await, Err(JoinError::Crashed), "round {round}, blocks of {bytes} bytes");
                ensure!(add(), "somebody was in another's section");
            }
        }
        Ok(())
    }
}
