//! The load monitor tells what is going on.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::sched::{LoadMonitor, Priority, Spawn, yield_now};
use magpie::stats::{self, Activity};
use magpie::time::Instant;
use magpie::{machine, time};
use magpie_tests::{Changed, Failure, Outcome, ensure, ensure_eq, kernel_test};

fn out_of_memory<E: core::fmt::Display>(error: E) -> Failure {
    Failure(alloc::format!("{error}"))
}

kernel_test! {
    /// Processes that wait are counted under their priority, on their core.
    async fn what_waits_is_counted_by_priority() -> Outcome {
        let _still = Changed::no_preemption()?;
        let Some(core) = CoreId::new(machine::cores() - 1) else { return Err("no such core".into()) };
        let watcher = Spawn::new().pinned(core).priority(Priority::Max).start(async move {
            // They are pinned here, where this one runs and does not yield: so they wait.
            let mut waiting = Vec::new();
            for (priority, count) in [(Priority::High, 2), (Priority::Normal, 3), (Priority::Low, 4)] {
                for _ in 0..count {
                    waiting.push(Spawn::new().pinned(core).priority(priority).start(async {}));
                }
            }
            let load = LoadMonitor::new().and_then(|mut monitor| monitor.sample());
            (load, waiting)
        })?;
        let Ok((load, started)) = watcher.await else { return Err("the watcher crashed".into()) };
        let load = load.map_err(out_of_memory)?;
        ensure_eq!(load.cores.len(), machine::cores(), "cores in the answer");
        let seen = load.cores[core.index()];
        ensure_eq!(seen.core, core, "the core's name");
        ensure!(seen.is_busy && seen.is_online, "the core runs the watcher");
        // The test itself is a `Normal` process and may have been queued here.
        ensure_eq!((seen.waiting[0], seen.waiting[1], seen.waiting[3]), (0, 2, 4), "Max, High, Low");
        ensure!((3..=4).contains(&seen.waiting[2]), "{} wait with Normal priority", seen.waiting[2]);
        for handle in started.into_iter().flatten() {
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        Ok(())
    }
}

/// What a core's time has been counted as so far, all together, and what the clock said before and after that was read.
#[derive(Clone, Copy)]
struct Counted {
    before: u64,
    ticks: u64,
    after: u64,
}

impl Counted {
    fn now(core: CoreId) -> Self {
        let before = Instant::now().ticks();
        let ticks = Activity::ALL.into_iter().map(|activity| stats::core(core).time.ticks(activity)).sum();
        Self { before, ticks, after: Instant::now().ticks() }
    }

    /// The same, by two readings that agree.
    fn first(core: CoreId) -> Result<Self, Failure> {
        let first = Self::now(core);
        first.again(core).or_else(|_| Self::now(core).again(core))
    }

    /// The same again. Fails unless as much was counted since then as has passed. What is read of a core that begins something else meanwhile
    /// may be wrong, and is read once more; what was counted wrongly stays so.
    fn again(self, core: CoreId) -> Result<Self, Failure> {
        let mut seen = Vec::new();
        for _ in 0..5 {
            let now = Self::now(core);
            let (counted, passed) =
                (now.ticks.wrapping_sub(self.ticks), now.before - self.after..=now.after - self.before);
            if passed.contains(&counted) {
                return Ok(now);
            }
            seen.push((counted, passed));
        }
        Err(Failure(alloc::format!(
            "the ticks of core {} that were counted and that passed: {seen:?}",
            core.index()
        )))
    }
}

/// What is seen while that core spins and the first does next to nothing.
async fn tell_the_busy_from_the_idle(far: CoreId) -> Outcome {
    const ROUNDS: usize = 8;
    let mut monitor = LoadMonitor::new().map_err(out_of_memory)?;
    let watched = [CoreId::BOOT, far];
    let mut counted = [Counted::first(CoreId::BOOT)?, Counted::first(far)?];
    for round in 1.. {
        time::sleep(Duration::from_millis(100)).await;
        let load = monitor.sample().map_err(out_of_memory)?;
        ensure!(load.during >= Duration::from_millis(100), "the time covered is {:?}", load.during);
        let (busy, idle) = (&load.cores[far.index()], &load.cores[0]);
        for (core, counted) in watched.into_iter().zip(&mut counted) {
            *counted = counted.again(core)?;
        }
        ensure_eq!(busy.share(Activity::Idle), 0, "the spinning core's idle time");
        ensure!(idle.share(Activity::Idle) > 0, "a core that only sleeps: {idle:?}");
        // A busy host may keep the first core from falling asleep, though not always.
        if busy.share(Activity::Running) > idle.share(Activity::Running) && round >= ROUNDS {
            return Ok(());
        }
    }
    Ok(())
}

kernel_test! {
    /// A core that spins is busy, one that has nothing to do is idle, and what their time is counted as adds up to all of it.
    #[cores(2)]
    async fn utilisation_tells_the_busy_from_the_idle() -> Outcome {
        let Some(far) = CoreId::new(machine::cores() - 1) else { return Err("no such core".into()) };
        let stop = Arc::new(AtomicBool::new(false));
        let begun = Arc::new(AtomicBool::new(false));
        let (seen, has_begun) = (stop.clone(), begun.clone());
        let hog = Spawn::new().pinned(far).start(async move {
            has_begun.store(true, Ordering::Relaxed);
            while !seen.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
        })?;
        // Until it runs, and everything before it has left the measured time.
        while !begun.load(Ordering::Relaxed) {
            time::sleep(Duration::from_millis(1)).await;
        }
        let seen = tell_the_busy_from_the_idle(far).await;
        stop.store(true, Ordering::Relaxed);
        ensure!(hog.await.is_ok(), "the hog crashed");
        seen
    }
}

kernel_test! {
    /// Waiting behind others shows as latency, and taking turns as turns.
    async fn latency_and_turns_are_counted() -> Outcome {
        let mut monitor = LoadMonitor::new().map_err(out_of_memory)?;
        let pinned = Spawn::new().pinned(CoreId::BOOT);
        let mut handles = Vec::new();
        for _ in 0..4 {
            handles.push(pinned.start(async {
                for _ in 0..100 {
                    yield_now().await;
                }
            })?);
        }
        for handle in handles {
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        let load = monitor.sample().map_err(out_of_memory)?;
        let boot = &load.cores[0];
        ensure!(boot.turns >= 400, "{} turns were counted of at least 400", boot.turns);
        ensure!(boot.longest_latency >= boot.mean_latency, "{boot:?}");
        ensure!(boot.longest_latency > Duration::ZERO, "somebody had to wait");
        Ok(())
    }
}

kernel_test! {
    /// It formats as a table with a line for each core.
    async fn it_formats_as_a_table() -> Outcome {
        let load = LoadMonitor::new().and_then(|mut monitor| monitor.sample()).map_err(out_of_memory)?;
        ensure_eq!(alloc::format!("{load}").lines().count(), 2 + machine::cores(), "lines");
        Ok(())
    }
}
