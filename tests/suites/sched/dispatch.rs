//! The three dispatch schemes: each does the work, keeps masks and priorities, and can be left at any time.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::arch::{CoreId, CoreSet};
use magpie::machine;
use magpie::sched::{self, Dispatch, Priority, Setting, Spawn, yield_now};
use magpie_tests::{Changed, Failure, ensure, ensure_eq, kernel_test};

use crate::stealing::run_many;

const ALL: [Dispatch; 3] = [Dispatch::Global, Dispatch::PerCore, Dispatch::Stealing];

fn under(scheme: Dispatch) -> Result<Changed, Failure> {
    Changed::new(&[(Setting::Dispatch, scheme as u64)])
}

kernel_test! {
    /// The same work is done under each of the three.
    async fn every_scheme_does_the_work() -> Outcome {
        for scheme in ALL {
            let _scheme = under(scheme)?;
            ensure_eq!(run_many(1_000).await?, 1_000, "processes that ended under {scheme:?}");
        }
        Ok(())
    }
}

kernel_test! {
    /// A process runs within its mask, whichever queue it waits in.
    #[cores(2)]
    async fn masks_hold_under_every_scheme() -> Outcome {
        for scheme in ALL {
            let _scheme = under(scheme)?;
            let mut handles = Vec::new();
            for number in 0..4 * machine::cores() {
                // Two neighbouring cores each, so that nothing is pinned unless there are just two.
                let first = number % (machine::cores() - 1);
                let cores: CoreSet = [first, first + 1].into_iter().filter_map(CoreId::new).collect();
                handles.push(Spawn::new().affinity(cores).start(async move {
                    for _ in 0..100 {
                        if sched::current_core().is_none_or(|core| !cores.contains(core)) {
                            return false;
                        }
                        yield_now().await;
                    }
                    true
                })?);
            }
            for handle in handles {
                ensure_eq!(handle.await, Ok(true), "whether the mask held under {scheme:?}");
            }
        }
        Ok(())
    }
}

kernel_test! {
    /// What waits when the scheme changes is found where it waits.
    async fn the_scheme_can_be_changed_while_processes_wait() -> Outcome {
        let _before = under(Dispatch::Stealing)?;
        let turns = Arc::new(AtomicU64::new(0));
        let mut handles = Vec::new();
        for _ in 0..200 {
            let turns = turns.clone();
            handles.push(sched::spawn(async move {
                for _ in 0..50 {
                    turns.fetch_add(1, Ordering::Relaxed);
                    yield_now().await;
                }
            })?);
        }
        // The last is not the global one, and what still waits there must be found.
        for round in 0..101 {
            let _ = sched::tuning::DISPATCH.set(ALL[round % ALL.len()]);
            yield_now().await;
        }
        for handle in handles {
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        ensure_eq!(turns.load(Ordering::Relaxed), 200 * 50, "turns");
        Ok(())
    }
}

/// Runs `body` on the first core for a hundred turns, beside processes there that yield as long as it has not ended.
async fn gets_its_turns(body: Spawn, beside: Spawn) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    let mut others = Vec::new();
    // As many as there are cores, for some of these may run anywhere.
    for _ in 0..3 * machine::cores() {
        let stop = stop.clone();
        others.push(beside.start(async move {
            while !stop.load(Ordering::Relaxed) {
                yield_now().await;
            }
        })?);
    }
    let ended = body.start(async {
        for _ in 0..100 {
            yield_now().await;
        }
    })?;
    let ended = ended.await;
    stop.store(true, Ordering::Relaxed);
    for other in others {
        ensure!(other.await.is_ok(), "a process crashed");
    }
    ensure!(ended.is_ok(), "the process crashed");
    Ok(())
}

kernel_test! {
    /// What waits in the global queue and what waits in a core's own do not starve each other, nor `Low` behind
    /// `Normal` in either.
    async fn nobody_starves_beside_the_global_queue() -> Outcome {
        let _global = under(Dispatch::Global)?;
        let (anywhere, here) = (Spawn::new(), Spawn::new().pinned(CoreId::BOOT));
        gets_its_turns(anywhere, here).await?;
        gets_its_turns(here, anywhere).await?;
        for beside in [anywhere, here] {
            gets_its_turns(anywhere.priority(Priority::Low), beside).await?;
            gets_its_turns(here.priority(Priority::Low), beside).await?;
        }
        Ok(())
    }
}

kernel_test! {
    /// A core that is out of service takes nothing from the global queue.
    #[cores(2)]
    async fn a_core_out_of_service_leaves_the_global_queue_alone() -> Outcome {
        let _global = under(Dispatch::Global)?;
        let Some(last) = CoreId::new(machine::cores() - 1) else { return Err("no such core".into()) };
        let flag = || Arc::new(AtomicBool::new(false));
        let (arrived, gone, stop) = (flag(), flag(), flag());
        let mut handles = Vec::new();
        for _ in 0..20 * machine::cores() {
            let (arrived, gone, stop) = (arrived.clone(), gone.clone(), stop.clone());
            handles.push(sched::spawn(async move {
                let mut seen_there = 0_u64;
                while !stop.load(Ordering::Relaxed) {
                    if sched::current_core() == Some(last) {
                        arrived.store(true, Ordering::Relaxed);
                    }
                    if gone.load(Ordering::Acquire) {
                        // The turn in progress may be there; the next may not.
                        yield_now().await;
                        seen_there += u64::from(sched::current_core() == Some(last));
                    }
                    yield_now().await;
                }
                seen_there
            })?);
        }
        while !arrived.load(Ordering::Relaxed) {
            yield_now().await;
        }
        sched::offline(last)?;
        gone.store(true, Ordering::Release);
        for _ in 0..500 {
            yield_now().await;
        }
        stop.store(true, Ordering::Relaxed);
        let mut there = 0;
        for handle in handles {
            there += handle.await.map_err(|_| "a process crashed")?;
        }
        sched::online(last)?;
        // One that it had looked for when it was still in service.
        ensure!(there <= 1, "the core gave {there} turns");
        Ok(())
    }
}
