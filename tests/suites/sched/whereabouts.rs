//! Saying where all cores and suspended processes are, which stops the cores for so long: afterwards all goes on. What is said is looked at by the
//! end-to-end tests `dump`, which run these.

use core::hint::black_box;
use core::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use core::time::Duration;

use alloc::sync::Arc;
use alloc::vec::Vec;

use magpie::arch::CoreId;
use magpie::internals::arch::irq;
use magpie::internals::sched::whereabouts;
use magpie::internals::trace::set_tracing;
use magpie::sched::{Priority, Spawn, yield_now};
use magpie::{machine, stats, time};
use magpie_tests::{Failure, HeapExhauster, ensure, kernel_test};

/// Until it is told to stop. It never gives up the core.
#[inline(never)]
fn spins(stop: &AtomicBool) -> u64 {
    let mut rounds = 0;
    while !stop.load(Ordering::Relaxed) {
        rounds = black_box(rounds + 1);
    }
    rounds
}

fn cores() -> impl Iterator<Item = CoreId> {
    (0..machine::cores()).filter_map(CoreId::new)
}

/// Turns that were suspended so far.
fn suspensions() -> u64 {
    stats::total(|core| core.preemptions.get())
}

kernel_test! {
    /// Two on each core take turns by being suspended; who looks is urgent. They go on in the end.
    async fn of_the_suspended() -> Outcome {
        let stop = Arc::new(AtomicBool::new(false));
        let mut hogs = Vec::new();
        for core in cores().chain(cores()) {
            let stop = stop.clone();
            hogs.push(Spawn::new().pinned(core).start(async move { spins(&stop) })?);
        }
        let look = async |stop: Arc<AtomicBool>| {
            for _ in 0..3 {
                let before = suspensions();
                // Each was suspended by then, as many as there are.
                while suspensions() < before + 2 * machine::cores() as u64 {
                    time::sleep(Duration::from_millis(1)).await;
                }
                whereabouts();
            }
            stop.store(true, Ordering::Relaxed);
        };
        Spawn::new().pinned(CoreId::BOOT).priority(Priority::High).start(look(stop))?.await?;
        for hog in hogs {
            ensure!(hog.await? > 0, "a hog has not gone round once");
        }
        Ok(())
    }
}

kernel_test! {
    /// Everybody asks at once: one is answered at a time, and the others go on.
    async fn asked_for_by_all() -> Outcome {
        let mut all = Vec::new();
        for core in cores() {
            let asks = async {
                for _ in 0..2 {
                    whereabouts();
                    yield_now().await;
                }
            };
            all.push(Spawn::new().pinned(core).start(asks)?);
        }
        for asks in all {
            asks.await.map_err(Failure::from)?;
        }
        Ok(())
    }
}

kernel_test! {
    /// A core that has interrupts masked is waited for, and then it is said that it does not answer. It goes on afterwards, and answers.
    async fn a_core_that_does_not_answer() -> Outcome {
        let Some(other) = CoreId::new(1).filter(|_| machine::cores() > 1) else { return Ok(()) };
        let (is_masked, is_seen) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (tells, waits) = (is_masked.clone(), is_seen.clone());
        let masked = Spawn::new().pinned(other).start(async move {
            // SAFETY: unmasked again below, before anything else.
            unsafe { irq::disable() };
            tells.store(true, Ordering::Release);
            let rounds = spins(&waits);
            // SAFETY: masked above; nothing between has to do with preemption.
            unsafe { irq::enable() };
            rounds
        })?;
        let looks = Spawn::new().pinned(CoreId::BOOT).start(async move {
            while !is_masked.load(Ordering::Acquire) {
                yield_now().await;
            }
            whereabouts();
            is_seen.store(true, Ordering::Relaxed);
            whereabouts();
        })?;
        looks.await?;
        ensure!(masked.await? > 0, "it has not gone round once");
        Ok(())
    }
}

kernel_test! {
    /// A look while every core writes down all that happens, as fast as it can, and nobody has memory.
    async fn beside_traces_and_without_memory() -> Outcome {
        let (stop, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let mut busy = Vec::new();
        for core in cores().chain(cores()) {
            let (stop, begun) = (stop.clone(), begun.clone());
            busy.push(Spawn::new().pinned(core).start(async move {
                begun.fetch_add(1, Ordering::Relaxed);
                while !stop.load(Ordering::Relaxed) {
                    yield_now().await;
                }
            })?);
        }
        let all = busy.len();
        let looks = Spawn::new().pinned(CoreId::BOOT).priority(Priority::High).start(async move {
            set_tracing(true);
            while begun.load(Ordering::Relaxed) < all {
                time::sleep(Duration::from_millis(1)).await;
            }
            let _exhauster = HeapExhauster::everything(16);
            for _ in 0..3 {
                whereabouts();
                yield_now().await;
            }
            set_tracing(false);
        })?;
        let looked = looks.await;
        stop.store(true, Ordering::Relaxed);
        for busy in busy {
            busy.await?;
        }
        Ok(looked?)
    }
}
