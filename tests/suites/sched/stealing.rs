//! Work moves to idle cores, under every rule, and none is lost or run twice.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::machine;
use magpie::sched::{self, Setting, VictimRule, yield_now};
use magpie_tests::{Outcome, ensure, ensure_eq, kernel_test};

/// Starts `count` processes that each yield a few times and count themselves; returns the count.
pub async fn run_many(count: u64) -> Result<u64, &'static str> {
    let ended = Arc::new(AtomicU64::new(0));
    let mut handles = Vec::new();
    for _ in 0..count {
        let ended = ended.clone();
        let handle = sched::spawn(async move {
            for _ in 0..5 {
                yield_now().await;
            }
            ended.fetch_add(1, Ordering::Relaxed);
        });
        handles.push(handle.map_err(|_| "a process was not started")?);
    }
    for handle in handles {
        handle.await.map_err(|_| "a process crashed")?;
    }
    Ok(ended.load(Ordering::Relaxed))
}

kernel_test! {
    /// Every process that is started runs to its end exactly once, more than fit into a deque.
    async fn every_process_runs_once() -> Outcome {
        ensure_eq!(run_many(5_000).await?, 5_000, "processes that ended");
        Ok(())
    }
}

/// Two processes, started on one core, that spin until each has seen the other spin: impossible on one
/// core without stealing, unless a slice ends in between, hence the core numbers.
async fn two_hogs_part() -> Outcome {
    let cores = Arc::new([const { AtomicU64::new(u64::MAX) }; 2]);
    let parted = Arc::new(AtomicBool::new(false));
    let mut handles = Vec::new();
    for me in 0..2 {
        let (cores, parted) = (cores.clone(), parted.clone());
        let handle = sched::spawn(async move {
            while !parted.load(Ordering::Relaxed) {
                let here = sched::current_core().map_or(u64::MAX, |core| core.index() as u64);
                cores[me].store(here, Ordering::Relaxed);
                let there = cores[1 - me].load(Ordering::Relaxed);
                if there != u64::MAX && there != here {
                    parted.store(true, Ordering::Relaxed);
                }
            }
        });
        let Ok(handle) = handle else { return Err("a hog was not started".into()) };
        handles.push(handle);
    }
    for handle in handles {
        ensure!(handle.await.is_ok(), "a hog crashed");
    }
    Ok(())
}

kernel_test! {
    /// Work conservation: with an idle core, two hogs on one core end up on two, under every victim rule.
    #[cores(2)]
    async fn two_hogs_end_up_on_two_cores() -> Outcome {
        let before = sched::setting(Setting::VictimRule);
        let mut outcome = Ok(());
        for rule in VictimRule::ALL {
            let _ = sched::set_setting(Setting::VictimRule, rule as u64);
            outcome = two_hogs_part().await;
            if outcome.is_err() {
                break;
            }
        }
        let _ = sched::set_setting(Setting::VictimRule, before);
        outcome
    }
}

kernel_test! {
    /// Processes started on one core are run by the others too: each spins until every core has joined in.
    #[cores(2)]
    #[machine("preemption")]
    async fn work_spreads_to_every_core() -> Outcome {
        let cores = machine::cores();
        let everyone = u64::MAX >> (64 - cores);
        let seen = Arc::new(AtomicU64::new(0));
        let mut handles = Vec::new();
        for _ in 0..4 * cores {
            let seen = seen.clone();
            let handle = sched::spawn(async move {
                while seen.load(Ordering::Relaxed) != everyone {
                    if let Some(here) = sched::current_core() {
                        seen.fetch_or(1 << here.index(), Ordering::Relaxed);
                    }
                }
            });
            let Ok(handle) = handle else { return Err("a process was not started".into()) };
            handles.push(handle);
        }
        for handle in handles {
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        Ok(())
    }
}
