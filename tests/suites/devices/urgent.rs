//! What an interrupt wakes that is more urgent than the turn that it has met: it goes first, whatever becomes of that turn.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::internals::mem::stack;
use magpie::internals::sync::PreemptGuard;
use magpie::interrupt::Interrupt;
use magpie::sched::{JoinError, JoinHandle, Priority, Spawn};
use magpie::stats;
use magpie::time::{self, Instant};
use magpie_tests::{Failure, HANGS_AFTER, amount, comes, ensure, ensure_eq, kernel_test};

use crate::interrupts::{ask, cores, line};

/// The line of these tests.
const LINE: u32 = 9;

/// Counts its interrupts on a core, until it has seen so many.
fn driver(
    core: CoreId,
    priority: Priority,
    times: u64,
) -> Result<(JoinHandle<u64>, Arc<AtomicU64>), Failure> {
    let seen = Arc::new(AtomicU64::new(0));
    let counts = seen.clone();
    let mut interrupt = Interrupt::claim(line(LINE))?;
    interrupt.route(core)?;
    let driver = Spawn::new().pinned(core).priority(priority).start(async move {
        while counts.load(Ordering::Relaxed) < times && interrupt.wait().await.is_ok() {
            counts.fetch_add(1, Ordering::Release);
        }
        counts.load(Ordering::Relaxed)
    })?;
    Ok((driver, seen))
}

/// Asks, and does nothing else until it is seen; so often. Whether it always was.
fn asks_and_spins(times: u64, seen: &AtomicU64) -> bool {
    (1..=times).all(|number| {
        ask(LINE);
        let began = Instant::now();
        while seen.load(Ordering::Acquire) < number {
            if began.elapsed() >= HANGS_AFTER {
                return false;
            }
            core::hint::spin_loop();
        }
        true
    })
}

fn urgent_preemptions() -> u64 {
    stats::total(|core| core.urgent_preemptions.get())
}

kernel_test! {
    /// A turn that never yields is left for it each time, and goes on behind it; of any priority that is less urgent, on every core.
    async fn goes_before_a_process_that_goes_on() -> Outcome {
        let times = amount("interrupts", 200);
        for core in cores() {
            for (urgent, other) in [
                (Priority::High, Priority::Normal),
                (Priority::High, Priority::Low),
                (Priority::Max, Priority::High),
                (Priority::Max, Priority::Low),
            ] {
                let before = urgent_preemptions();
                let (driver, seen) = driver(core, urgent, times)?;
                let spins = Spawn::new().pinned(core).priority(other);
                let spins = spins.start(async move { asks_and_spins(times, &seen) })?;
                ensure!(spins.await?, "an interrupt was not told while {other:?} went on");
                ensure_eq!(driver.await?, times, "interrupts told to {urgent:?}");
                let left = urgent_preemptions() - before;
                ensure!(left >= times, "{left} turns of {times} were left for {urgent:?}");
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// In a section without preemption the turn goes on to the end of that, and is left there.
    async fn waits_for_the_end_of_a_section() -> Outcome {
        let times = amount("interrupts", 200);
        for core in cores() {
            let (driver, seen) = driver(core, Priority::High, times)?;
            let asks = Spawn::new().pinned(core).start(async move {
                for number in 1..=times {
                    // The line is let through when its driver waits.
                    comes(|| seen.load(Ordering::Acquire) + 1 == number, "an interrupt was not told").await?;
                    let section = PreemptGuard::new();
                    ask(LINE);
                    for _ in 0..100 {
                        core::hint::spin_loop();
                    }
                    ensure_eq!(seen.load(Ordering::Acquire) + 1, number, "interrupts told in the section");
                    drop(section);
                    ensure_eq!(seen.load(Ordering::Acquire), number, "interrupts told at its end");
                }
                Ok::<(), Failure>(())
            })?;
            asks.await??;
            ensure_eq!(driver.await?, times, "interrupts told");
        }
        Ok(())
    }
}

/// An actor that goes on.
struct Spins;

impl Actor for Spins {}

struct Go {
    times: u64,
    seen: Arc<AtomicU64>,
}

impl Receive<Go> for Spins {
    type Reply = bool;

    fn receive(&mut self, Go { times, seen }: Go, _: &mut Context<Self>) -> bool {
        asks_and_spins(times, &seen)
    }
}

kernel_test! {
    /// So it is before a behaviour that never ends, which is suspended.
    async fn goes_before_a_behaviour_that_goes_on() -> Outcome {
        let times = amount("interrupts", 200);
        let executor = Executor::start(&Config::default().workers(1))?;
        let spins = executor.handle().spawn(Spins)?;
        // The first worker is the first core's.
        let (driver, seen) = driver(CoreId::BOOT, Priority::High, times)?;
        ensure_eq!(spins.ask(Go { times, seen }).await, Ok(true), "whether each was told");
        ensure_eq!(driver.await?, times, "interrupts told");
        executor.stop().await;
        Ok(())
    }
}

/// Goes on until it is told, and asks meanwhile.
async fn spin_and_ask(is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        ask(LINE);
        for _ in 0..50 {
            core::hint::spin_loop();
        }
    }
}

/// Waits until more were told than so many.
async fn sees_more(seen: &AtomicU64, than: u64) -> Result<(), Failure> {
    let began = Instant::now();
    while seen.load(Ordering::Acquire) <= than {
        ensure!(began.elapsed() < HANGS_AFTER, "an interrupt was not told");
        time::sleep(Duration::from_micros(20)).await;
    }
    Ok(())
}

kernel_test! {
    /// The turn that it has met is that of a process which is killed meanwhile: what comes then is told, and what comes afterwards.
    #[machine("crashes")]
    async fn comes_while_the_turn_is_killed() -> Outcome {
        let rounds = amount("rounds", 60);
        for core in cores() {
            let (driver, seen) = driver(core, Priority::High, u64::MAX)?;
            let judge = Spawn::new().priority(Priority::Max).start(async move {
                for round in 0..rounds {
                    let before = seen.load(Ordering::Acquire);
                    let victim = Spawn::new().pinned(core).start(spin_and_ask(Arc::default()))?;
                    sees_more(&seen, before + round % 7).await?;
                    victim.process().kill();
                    ensure_eq!(victim.await, Err(JoinError::Killed), "what the victim's handle says");
                    // Whatever came last is told all the same.
                    let before = seen.load(Ordering::Acquire);
                    ask(LINE);
                    sees_more(&seen, before).await?;
                }
                Ok::<(), Failure>(())
            })?;
            judge.await??;
            driver.process().kill();
            ensure_eq!(driver.await, Err(JoinError::Killed), "what the driver's handle says");
        }
        Ok(())
    }
}

/// Goes on for ever, or until it is told.
async fn spin(is_over: Arc<AtomicBool>) {
    while !is_over.load(Ordering::Relaxed) {
        core::hint::spin_loop();
    }
}

/// Asks in turns that begin behind those of hogs, until so many preemptions more were refused for want of a stack.
async fn asks_where_no_stack_is_free(core: CoreId, times: u64) -> Result<(), Failure> {
    let refused = || stats::total(|core| core.preemptions_without_stack.get());
    let before = refused();
    let (driver, seen) = driver(core, Priority::High, u64::MAX)?;
    let mut number = 0;
    while refused() < before + times {
        number += 1;
        ensure!(number < 100 * times, "a stack was free nearly each time, so the test says nothing");
        // The next turn begins when a hog was suspended, so it is on the core's last stack.
        time::sleep(Duration::from_micros(100)).await;
        ask(LINE);
        for _ in 0..500 {
            core::hint::spin_loop();
        }
        comes(|| seen.load(Ordering::Acquire) >= number, "an interrupt was not told").await?;
    }
    driver.process().kill();
    ensure_eq!(driver.await, Err(JoinError::Killed), "what the driver's handle says");
    Ok(())
}

kernel_test! {
    /// No stack is free for the loop that would leave the turn: that goes on, and what was woken has its turn behind it.
    #[machine("stacks of its own")]
    async fn waits_where_no_stack_is_free() -> Outcome {
        let times = amount("interrupts", 20);
        let is_over = Arc::new(AtomicBool::new(false));
        // Whose turn it is to ask, by their cores; nobody's before the hogs are there.
        let whose = Arc::new(AtomicU64::new(u64::MAX));
        let begun = Arc::new(AtomicU64::new(0));
        let mut askers = Vec::new();
        for (number, core) in (0..).zip(cores()) {
            let (whose, begun) = (whose.clone(), begun.clone());
            askers.push(Spawn::new().pinned(core).start(async move {
                begun.fetch_add(1, Ordering::Relaxed);
                // What has ended a turn by itself has one on a core's last stack, too; what is new has not.
                while whose.load(Ordering::Relaxed) != number || stack::usage().1 > 0 {
                    time::sleep(Duration::from_millis(1)).await;
                }
                let asked = asks_where_no_stack_is_free(core, times).await;
                whose.store(number + 1, Ordering::Relaxed);
                asked
            })?);
        }
        comes(|| begun.load(Ordering::Relaxed) == askers.len() as u64, "an asker has not begun").await?;
        let mut hogs = Vec::new();
        for _ in 0..stack::usage().0 + 30 {
            hogs.push(Spawn::new().priority(Priority::Low).start(spin(is_over.clone()))?);
        }
        whose.store(0, Ordering::Relaxed);
        let mut asked = Vec::new();
        for asks in askers {
            asked.push(asks.await);
        }
        is_over.store(true, Ordering::Relaxed);
        for hog in hogs {
            ensure_eq!(hog.await, Ok(()), "what a hog's handle says");
        }
        for asked in asked {
            asked??;
        }
        Ok(())
    }
}
