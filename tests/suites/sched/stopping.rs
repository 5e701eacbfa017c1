//! The kernel's own panics: every core stops, whatever it was doing, and one dump says where each was. What it says is looked at
//! by the end-to-end tests `kernel_panic`, which run these.

use core::hint::black_box;
use core::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use magpie::arch::CoreId;
use magpie::internals::arch::irq;
use magpie::internals::sync::{PreemptGuard, SpinLock};
use magpie::log::text;
use magpie::sched::{self, Priority, Spawn};
use magpie::{machine, mem, stats};
use magpie_tests::{Failure, Outcome, expect_panic, kernel_test};

static ARRIVED: AtomicUsize = AtomicUsize::new(0);
static GO_ON: AtomicUsize = AtomicUsize::new(0);
static HELD: SpinLock<()> = SpinLock::new(());

fn arrive() {
    // Release: pairs with the acquire in `wait_for`.
    ARRIVED.fetch_add(1, Ordering::Release);
}

fn wait_for(arrived: usize) {
    while ARRIVED.load(Ordering::Acquire) < arrived {
        core::hint::spin_loop();
    }
}

/// Other cores than the first.
fn others() -> impl Iterator<Item = CoreId> {
    (1..machine::cores()).filter_map(CoreId::new)
}

/// Puts this on a core, and waits until it is there.
fn put(core: CoreId, what: impl FnOnce() + Send + 'static) -> Outcome {
    let before = ARRIVED.load(Ordering::Relaxed);
    Spawn::new()
        .pinned(core)
        .start(async move { what() })
        .map_err(|error| Failure(alloc::format!("{error}")))?;
    wait_for(before + 1);
    Ok(())
}

/// Waits until this core has had a turn and found nothing more to run: it may have just had one of the test's own.
fn wait_until_idle(core: CoreId) -> Outcome {
    static BEFORE: AtomicU64 = AtomicU64::new(0);
    let dozes = move || stats::core(core).dozes.get();
    put(core, move || {
        BEFORE.store(dozes(), Ordering::Relaxed);
        arrive();
    })?;
    while dozes() == BEFORE.load(Ordering::Relaxed) {
        core::hint::spin_loop();
    }
    Ok(())
}

/// Goes on and on.
#[inline(never)]
fn spins() {
    arrive();
    while GO_ON.load(Ordering::Relaxed) == 0 {
        black_box(());
    }
}

/// Waits for a lock that the panicking core holds.
#[inline(never)]
fn waits_for_a_lock() {
    arrive();
    drop(HELD.lock());
}

/// Masks interrupts, for ever.
#[inline(never)]
fn answers_nobody() {
    arrive();
    // SAFETY: deliberately not: the kernel is about to stop.
    unsafe { irq::disable() };
    loop {
        black_box(());
    }
}

/// Does this on the core that boots, from where the others can be told what to do.
async fn on_the_first(what: impl FnOnce() -> Outcome + Send + 'static) -> Outcome {
    Spawn::new().pinned(CoreId::BOOT).start(async move { what() })?.await?
}

#[inline(never)]
fn panics_with_all_held() -> Outcome {
    let _here = PreemptGuard::new();
    panic!("with everything held");
}

kernel_test! {
    /// The first core panics with a lock held; another waits for that lock, one sleeps, the others are busy.
    #[machine("a panic of the kernel")]
    async fn with_locks_held() -> Outcome {
        on_the_first(|| {
            let held = HELD.lock();
            for core in others() {
                match core.index() {
                    1 => put(core, waits_for_a_lock)?,
                    2 => wait_until_idle(core)?,
                    _ => put(core, spins)?,
                }
            }
            for priority in [Priority::Normal, Priority::Normal, Priority::Low] {
                Spawn::new().priority(priority).pinned(CoreId::BOOT).start(async {})?;
            }
            expect_panic("with everything held");
            let outcome = panics_with_all_held();
            drop(held);
            outcome
        })
        .await
    }
}

kernel_test! {
    /// One core has masked its interrupts.
    #[cores(2)]
    #[machine("a panic of the kernel")]
    async fn with_a_core_that_does_not_answer() -> Outcome {
        on_the_first(|| {
            for core in others() {
                put(core, if core.index() == 1 { answers_nobody } else { spins })?;
            }
            expect_panic("with everything held");
            panics_with_all_held()
        })
        .await
    }
}

kernel_test! {
    /// All cores panic, and while they say so others print and allocate: one dump.
    #[cores(2)]
    #[machine("a panic of the kernel")]
    async fn on_all_cores_at_once() -> Outcome {
        let wanted = ARRIVED.load(Ordering::Relaxed) + machine::cores();
        expect_panic("with everything held");
        for core in others() {
            Spawn::new().pinned(core).start(async move {
                arrive();
                wait_for(wanted);
                panics_with_all_held()
            })?;
        }
        arrive();
        wait_for(wanted);
        panics_with_all_held()
    }
}

kernel_test! {
    /// What others do meanwhile: they print, allocate and crash.
    #[machine("a panic of the kernel")]
    async fn amid_others_work() -> Outcome {
        for core in others() {
            Spawn::new().pinned(core).start(async move {
                arrive();
                loop {
                    text!("core {} goes on", core.index());
                    drop(black_box(mem::try_box([core.index(); 100])));
                    // Its end is nobody's business here.
                    drop(sched::spawn(async { panic!("one of many") }));
                    sched::yield_now().await;
                }
            })?;
        }
        wait_for(machine::cores() - 1);
        expect_panic("with everything held");
        panics_with_all_held()
    }
}

kernel_test! {
    /// A fault of the kernel's own: its registers are those of the code that faulted.
    #[machine("a panic of the kernel")]
    async fn by_a_fault() -> Outcome {
        expect_panic("data abort at pc");
        reads_nothing()
    }
}

#[inline(never)]
fn reads_nothing() -> Outcome {
    let here = PreemptGuard::new();
    let nowhere = black_box(8_usize) as *const u64;
    // SAFETY: deliberately not: nothing is mapped there.
    let read = unsafe { nowhere.read_volatile() };
    drop(here);
    Err(Failure(alloc::format!("read {read}")))
}
