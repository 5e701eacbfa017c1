//! The migration policy: each rule refuses and counts, none strands work, and the balancer evens out loads.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::arch::{CoreId, CoreSet};
use magpie::sched::{self, Priority, Rule, Setting, Spawn, yield_now};
use magpie::{machine, stats};
use magpie_tests::{Changed, Failure, ensure, ensure_eq, kernel_test};

/// Nobody steals, everybody balances all the time, and no rule refuses.
const LENIENT: [(Setting, u64); 12] = [
    (Setting::Thieves, 0),
    (Setting::MigrationsPerProcess, u32::MAX as u64),
    (Setting::MigrationsPerCore, u32::MAX as u64),
    (Setting::MigrationsSystemWide, u32::MAX as u64),
    (Setting::MigrationMinimumQueue, 1),
    (Setting::MigrationLoadDifferencePercent, 0),
    (Setting::MigrationAgeMicroseconds, 0),
    (Setting::MigrationResidencyMicroseconds, 0),
    (Setting::MigrationCoolingMicroseconds, 0),
    (Setting::BalanceMicroseconds, 100),
    (Setting::BalanceLoadedMicroseconds, 100),
    (Setting::BalanceQuietMicroseconds, 100),
];

const FOREVER_MICROSECONDS: u64 = 60_000_000;

fn refusals(rule: Rule) -> u64 {
    stats::total(|core| core.migrations_refused[rule as usize].get())
}

fn balanced() -> u64 {
    stats::total(|core| core.processes_balanced.get())
}

/// Keeps one process turning on every core but the first, and `many` that may run on `affinity` on the first, until
/// `enough` says so. How many processes had been moved by then, ever: at the beginning and at the end cores are idle, and want more.
async fn under_imbalance(many: usize, affinity: CoreSet, enough: impl Fn() -> bool) -> Result<u64, Failure> {
    let (stop, begun) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let counts = begun.clone();
    let turning = move |stop: &Arc<AtomicBool>| {
        let (stop, begun) = (stop.clone(), counts.clone());
        async move {
            begun.fetch_add(1, Ordering::Relaxed);
            while !stop.load(Ordering::Relaxed) {
                yield_now().await;
            }
        }
    };
    let mut handles = Vec::new();
    for core in (1..machine::cores()).filter_map(CoreId::new) {
        handles.push(Spawn::new().pinned(core).start(turning(&stop))?);
    }
    while begun.load(Ordering::Relaxed) < handles.len() as u64 {
        yield_now().await;
    }
    // Processes are placed on their parent's core.
    let spawner = stop.clone();
    let started = Spawn::new().pinned(CoreId::BOOT).start(async move {
        (0..many).map(|_| Spawn::new().affinity(affinity).start(turning(&spawner))).collect::<Vec<_>>()
    })?;
    let Ok(started) = started.await else { return Err("the parent crashed".into()) };
    while !enough() {
        yield_now().await;
    }
    let moved = balanced();
    stop.store(true, Ordering::Relaxed);
    for handle in started.into_iter().flatten().chain(handles) {
        if handle.await.is_err() {
            return Err("a process crashed".into());
        }
    }
    Ok(moved)
}

/// With this one rule made strict, the balancer is refused by it; by some rules from the very first move on.
async fn refuses(rule: Rule, strict: (Setting, u64), from_the_first: bool) -> Result<(), Failure> {
    // In one go: what is moved in between would count.
    let changes = LENIENT.map(|change| if change.0 == strict.0 { strict } else { change });
    let _changed = Changed::new(&changes)?;
    let (refused, moved) = (refusals(rule), balanced());
    let by_then = under_imbalance(40, CoreSet::ALL, || refusals(rule) >= refused + 20).await?;
    if from_the_first {
        ensure_eq!(by_then, moved, "processes moved in spite of {rule:?}");
    }
    Ok(())
}

kernel_test! {
    /// A turn that never ends does not keep its core from balancing: every core but the first is held by a hog
    /// of its own, the first by many, all of which spin until some of them were seen on every core.
    #[cores(2)]
    #[machine("preemption")]
    async fn a_lone_hog_does_not_keep_its_core_from_balancing() -> Outcome {
        let everyone = u64::MAX >> (64 - machine::cores());
        let seen = Arc::new(AtomicU64::new(0));
        let mut hogs = Vec::new();
        for core in (1..machine::cores()).filter_map(CoreId::new) {
            let (begun, running) = (Arc::new(AtomicBool::new(false)), seen.clone());
            let now_begun = begun.clone();
            hogs.push(Spawn::new().pinned(core).start(async move {
                now_begun.store(true, Ordering::Relaxed);
                while running.load(Ordering::Relaxed) != everyone {
                    core::hint::spin_loop();
                }
            })?);
            while !begun.load(Ordering::Relaxed) {
                yield_now().await;
            }
        }
        let moving = seen.clone();
        let started = Spawn::new().pinned(CoreId::BOOT).start(async move {
            let hog = || {
                let seen = moving.clone();
                async move {
                    while seen.load(Ordering::Relaxed) != everyone {
                        if let Some(here) = sched::current_core() {
                            seen.fetch_or(1 << here.index(), Ordering::Relaxed);
                        }
                    }
                }
            };
            (0..4 * machine::cores()).map(|_| Spawn::new().start(hog())).collect::<Vec<_>>()
        })?;
        let Ok(started) = started.await else { return Err("the parent crashed".into()) };
        for hog in started.into_iter().flatten().chain(hogs) {
            ensure!(hog.await.is_ok(), "a hog crashed");
        }
        Ok(())
    }
}

kernel_test! {
    /// A core with too few processes gives none away.
    #[cores(2)]
    async fn minimum_queue() -> Outcome {
        refuses(Rule::MinimumQueue, (Setting::MigrationMinimumQueue, 1_000_000), true).await
    }
}

kernel_test! {
    /// A source must exceed its target by a share of its own load.
    #[cores(2)]
    async fn load_difference() -> Outcome {
        refuses(Rule::LoadDifference, (Setting::MigrationLoadDifferencePercent, 100), true).await
    }
}

kernel_test! {
    /// A process must have waited.
    #[cores(2)]
    async fn waiting_age() -> Outcome {
        refuses(Rule::Age, (Setting::MigrationAgeMicroseconds, FOREVER_MICROSECONDS), true).await
    }
}

kernel_test! {
    /// A process that has moved stays for a while, even where it would be better off going back.
    #[cores(2)]
    async fn residency() -> Outcome {
        let _lenient = Changed::new(&LENIENT)?;
        let _strict = Changed::new(&[(Setting::MigrationResidencyMicroseconds, FOREVER_MICROSECONDS)])?;
        let (refused, moved) = (refusals(Rule::Residency), balanced());
        let (leave, stop) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let (seen_leave, seen_stop) = (leave.clone(), stop.clone());
        // Until told to leave, they spread; then those end that have stayed on the first core.
        let started = Spawn::new().pinned(CoreId::BOOT).start(async move {
            let turning = || {
                let (leave, stop) = (seen_leave.clone(), seen_stop.clone());
                sched::spawn(async move {
                    let is_told = || leave.load(Ordering::Relaxed) && sched::current_core() == Some(CoreId::BOOT);
                    while !stop.load(Ordering::Relaxed) && !is_told() {
                        yield_now().await;
                    }
                })
            };
            (0..40).map(|_| turning()).collect::<Vec<_>>()
        })?;
        let Ok(started) = started.await else { return Err("the parent crashed".into()) };
        // Only a core that runs something balances.
        let mut busy = Vec::new();
        for core in (1..machine::cores()).filter_map(CoreId::new) {
            let stop = stop.clone();
            busy.push(Spawn::new().pinned(core).start(async move {
                while !stop.load(Ordering::Relaxed) {
                    yield_now().await;
                }
            })?);
        }
        let here = Spawn::new().pinned(CoreId::BOOT).start(async move {
            while balanced() < moved + 10 {
                yield_now().await;
            }
            leave.store(true, Ordering::Relaxed);
            while refusals(Rule::Residency) < refused + 5 {
                yield_now().await;
            }
        })?;
        ensure!(here.await.is_ok(), "a process crashed");
        stop.store(true, Ordering::Relaxed);
        for handle in started.into_iter().flatten().chain(busy) {
            ensure!(handle.await.is_ok(), "a process crashed");
        }
        Ok(())
    }
}

kernel_test! {
    /// A process is moved so often in an interval.
    #[cores(2)]
    async fn limit_for_a_process() -> Outcome {
        refuses(Rule::PerProcess, (Setting::MigrationsPerProcess, 0), true).await
    }
}

kernel_test! {
    /// A core takes so many in an interval.
    #[cores(2)]
    async fn limit_for_a_core() -> Outcome {
        refuses(Rule::PerCore, (Setting::MigrationsPerCore, 0), true).await
    }
}

kernel_test! {
    /// All cores together take so many in an interval.
    #[cores(2)]
    async fn limit_for_the_system() -> Outcome {
        refuses(Rule::SystemWide, (Setting::MigrationsSystemWide, 0), true).await
    }
}

kernel_test! {
    /// A core does not go back to the same source at once.
    #[cores(2)]
    async fn cooling() -> Outcome {
        refuses(Rule::Cooling, (Setting::MigrationCoolingMicroseconds, FOREVER_MICROSECONDS), false).await
    }
}

kernel_test! {
    /// No core takes a process that may not run there; the cores that may do.
    #[cores(3)]
    async fn affinity_mask() -> Outcome {
        let _lenient = Changed::new(&LENIENT)?;
        let refused = refusals(Rule::Affinity);
        under_imbalance(40, [0, 1].into_iter().filter_map(CoreId::new).collect(), || refusals(Rule::Affinity) >= refused + 20).await.map(drop)
    }
}

kernel_test! {
    /// Without thieves, the balancer alone brings work to the cores that have less.
    #[cores(2)]
    async fn the_balancer_evens_out() -> Outcome {
        let _lenient = Changed::new(&LENIENT)?;
        let before = balanced();
        under_imbalance(40, CoreSet::ALL, || balanced() >= before + 10).await.map(drop)
    }
}

kernel_test! {
    /// With every rule as strict as it can be, an idle core still comes for what waits behind a busy one. Who has slept for long
    /// is called at a slice's end, by an interrupt, which threads do not have.
    #[cores(2)]
    #[machine("preemption")]
    async fn no_setting_strands_work() -> Outcome {
        const STRICT: [(Setting, u64); 8] = [
            (Setting::MigrationsPerProcess, 0),
            (Setting::MigrationsPerCore, 0),
            (Setting::MigrationsSystemWide, 0),
            (Setting::MigrationMinimumQueue, 1_000_000),
            (Setting::MigrationLoadDifferencePercent, 100),
            (Setting::MigrationAgeMicroseconds, FOREVER_MICROSECONDS),
            (Setting::MigrationResidencyMicroseconds, FOREVER_MICROSECONDS),
            (Setting::MigrationCoolingMicroseconds, FOREVER_MICROSECONDS),
        ];
        let _strict = Changed::new(&STRICT)?;
        for _ in 0..50 {
            let turns = Arc::new(AtomicU64::new(0));
            let seen = turns.clone();
            // It holds its core until the other has run. At its priority, so that preemption does not bring about what
            // stealing is to.
            let busy = Spawn::new().priority(Priority::Max).pinned(CoreId::BOOT).start(async move {
                let other = seen.clone();
                let behind = sched::spawn(async move {
                    // First, because once it was seen it may be anywhere.
                    let here = sched::current_core();
                    other.fetch_add(1, Ordering::Relaxed);
                    here
                });
                while seen.load(Ordering::Relaxed) == 0 {
                    core::hint::spin_loop();
                }
                behind
            })?;
            let Ok(Ok(behind)) = busy.await else { return Err("a process was not started".into()) };
            let Ok(ran_on) = behind.await else { return Err("a process crashed".into()) };
            ensure!(ran_on != Some(CoreId::BOOT), "the second process waited for its busy core");
        }
        Ok(())
    }
}
