//! Cores go out of service and come back; nothing is lost on the way.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Config, Executor};
use magpie::arch::{CoreId, CoreSet};
use magpie::sched::{self, OfflineError, Priority, Spawn, SpawnError, yield_now};
use magpie::stats::Activity;
use magpie::{machine, stats, time};
use magpie_tests::{Failure, ensure, ensure_eq, kernel_test};

fn core(index: usize) -> CoreId {
    CoreId::new(index).unwrap_or(CoreId::BOOT)
}

fn others() -> impl Iterator<Item = CoreId> {
    (1..machine::cores()).filter_map(CoreId::new)
}

kernel_test! {
    /// What cannot be done is said, and changes nothing.
    async fn refusals_are_clear() -> Outcome {
        ensure_eq!(sched::offline(CoreId::BOOT), Err(OfflineError::BootCore), "the boot core");
        let beyond = core(machine::cores());
        if beyond != CoreId::BOOT {
            ensure_eq!(sched::offline(beyond), Err(OfflineError::NoSuchCore), "a core that is not there");
        }
        ensure!(sched::is_online(CoreId::BOOT), "the boot core is out of service");
        Ok(())
    }
}

kernel_test! {
    /// A core with a process that can run nowhere else stays; once that has ended it goes, and nothing can be
    /// pinned to it until it is back.
    #[cores(2)]
    async fn a_pinned_process_is_not_stranded() -> Outcome {
        let last = core(machine::cores() - 1);
        let stop = Arc::new(AtomicBool::new(false));
        let seen = stop.clone();
        let pinned = Spawn::new().pinned(last).start(async move {
            while !seen.load(Ordering::Relaxed) {
                yield_now().await;
            }
        })?;
        ensure_eq!(sched::offline(last), Err(OfflineError::Pinned(1)), "with one pinned process");
        ensure!(sched::is_online(last), "the core went in spite of it");
        stop.store(true, Ordering::Relaxed);
        ensure!(pinned.await.is_ok(), "the pinned process crashed");
        let executor = Executor::start(&Config::default())?;
        ensure_eq!(sched::offline(last), Err(OfflineError::Pinned(1)), "with an executor's worker");
        executor.stop().await;
        // The process counts until its last turn is over, which may be a moment after it was joined.
        while sched::offline(last).is_err() {
            yield_now().await;
        }
        let refused = Spawn::new().pinned(last).start(async {});
        ensure_eq!(refused.err(), Some(SpawnError::CoreOffline), "pinned to a core out of service");
        ensure!(Executor::start(&Config::default()).is_err(), "a worker was started on a core out of service");
        ensure_eq!(sched::online(last), Ok(()), "coming back");
        let ran = Spawn::new().pinned(last).start(async { sched::current_core() })?;
        ensure_eq!(ran.await, Ok(Some(last)), "where it ran");
        Ok(())
    }
}

kernel_test! {
    /// Thousands of processes live on while cores go and come: each does all its turns.
    #[cores(2)]
    async fn nothing_is_lost_while_cores_come_and_go() -> Outcome {
        const PROCESSES: u64 = 2000;
        const TURNS: u64 = 50;
        let turns = Arc::new(AtomicU64::new(0));
        let mut handles = Vec::new();
        for number in 0..PROCESSES {
            let turns = turns.clone();
            handles.push(sched::spawn(async move {
                for turn in 0..TURNS {
                    turns.fetch_add(1, Ordering::Relaxed);
                    if (number + turn) % 16 == 0 {
                        time::sleep(Duration::from_micros(50)).await;
                    } else {
                        yield_now().await;
                    }
                }
            })?);
        }
        for round in 0..20 {
            for other in others().filter(|other| (other.index() + round) % 2 == 0) {
                while sched::offline(other).is_err() {
                    yield_now().await;
                }
            }
            time::sleep(Duration::from_micros(300)).await;
            for other in others() {
                ensure_eq!(sched::online(other), Ok(()), "coming back");
            }
            yield_now().await;
        }
        for handle in handles {
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        ensure_eq!(turns.load(Ordering::Relaxed), PROCESSES * TURNS, "turns");
        Ok(())
    }
}

kernel_test! {
    /// A core out of service runs nothing, and a process that was suspended there goes on elsewhere.
    #[cores(2)]
    async fn a_core_out_of_service_runs_nothing() -> Outcome {
        for other in others() {
            while sched::offline(other).is_err() {
                yield_now().await;
            }
            // It may be in a turn, or about to begin one that it has looked for before. Once it has nothing to do it looks
            // for nothing more.
            let idle = || stats::core(other).time.ticks(Activity::Idle);
            let before = idle();
            while idle() == before {
                time::sleep(Duration::from_micros(100)).await;
            }
        }
        let switches = || others().map(|id| stats::core(id).context_switches()).sum::<u64>();
        let before = switches();
        let mut handles = Vec::new();
        for _ in 0..500 {
            handles.push(sched::spawn(async {
                for _ in 0..20 {
                    yield_now().await;
                }
                sched::current_core()
            })?);
        }
        let mut elsewhere = 0;
        for handle in handles {
            let ran_on = handle.await.map_err(|error| Failure(alloc::format!("{error:?}")))?;
            elsewhere += u64::from(ran_on != Some(CoreId::BOOT));
        }
        let after = switches();
        // The system runs out of work with those cores as with all.
        sched::out_of_work().await;
        for other in others() {
            ensure_eq!(sched::online(other), Ok(()), "coming back");
        }
        ensure_eq!(elsewhere, 0, "processes that ended on a core out of service");
        ensure_eq!(after, before, "turns on cores out of service");
        Ok(())
    }
}

/// On this core, whose neighbour is another: takes it out of service while somebody as urgent waits behind this turn. Where that one ran, if it had not
/// run before; `None` if it had, or if this turn is on another core.
async fn leaves_one_behind(last: CoreId, may_run: CoreSet) -> Result<Option<Option<CoreId>>, Failure> {
    // Who has begun this one is pinned to the core, and ends.
    time::sleep(Duration::from_micros(50)).await;
    if sched::current_core() != Some(last) {
        return Ok(None);
    }
    let has_run = Arc::new(AtomicBool::new(false));
    let runs = has_run.clone();
    let urgent = Spawn::new().priority(Priority::High).affinity(may_run);
    let waits = urgent.start(async move {
        runs.store(true, Ordering::Relaxed);
        sched::current_core()
    })?;
    if sched::offline(last).is_err() {
        waits.await?;
        return Ok(None);
    }
    // A host that holds up the guest may have this turn go on elsewhere, and the other begin here before.
    let is_behind = !has_run.load(Ordering::Relaxed) && sched::current_core() == Some(last);
    let ran_on = waits.await;
    ensure_eq!(sched::online(last), Ok(()), "coming back");
    Ok(is_behind.then_some(ran_on?))
}

kernel_test! {
    /// What is urgent and waits on a core that goes out of service is handed on before it has a turn there.
    #[cores(2)]
    async fn what_is_urgent_is_handed_on() -> Outcome {
        let last = core(machine::cores() - 1);
        let may_run = CoreSet::of(CoreId::BOOT).with(last);
        let mut behind = 0;
        for _ in 0..500 {
            let begins = Spawn::new().pinned(last).start(async move {
                // On this core, unless another takes it.
                Spawn::new().priority(Priority::High).affinity(may_run).start(leaves_one_behind(last, may_run))
            })?;
            if let Some(ran_on) = begins.await??.await?? {
                ensure_eq!(ran_on, Some(CoreId::BOOT), "where it ran that waited on a core out of service");
                behind += 1;
            }
            if behind == 20 {
                break;
            }
        }
        ensure!(behind > 0, "nothing ever waited there, so the test says nothing");
        Ok(())
    }
}
