//! How soon two processes that never yield, or that yield all the time, started on one core, are on two.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::machine;
use magpie::sched::{self, Priority, Setting, Spawn, SpawnError, VictimRule, yield_now};
use magpie::time::{self, Instant};
use magpie_tests::{Changed, Failure, ensure, kernel_test};

use crate::{SLACK, needs_counted_time, slice, within};

const FOREVER_MICROSECONDS: u64 = 60_000_000;

/// Each threshold of the migration policy, at the end of its range that allows least, and at the one that allows most.
const THRESHOLDS: [(Setting, u64, u64); 8] = [
    (Setting::MigrationsPerProcess, 0, u32::MAX as u64),
    (Setting::MigrationsPerCore, 0, u32::MAX as u64),
    (Setting::MigrationsSystemWide, 0, u32::MAX as u64),
    (Setting::MigrationMinimumQueue, 1_000_000, 1),
    (Setting::MigrationLoadDifferencePercent, 100, 0),
    (Setting::MigrationAgeMicroseconds, FOREVER_MICROSECONDS, 0),
    (Setting::MigrationResidencyMicroseconds, FOREVER_MICROSECONDS, 0),
    (Setting::MigrationCoolingMicroseconds, FOREVER_MICROSECONDS, 0),
];

/// From the start of the second hog until both were seen on different cores. Each goes on for ever, or in turns that are short.
async fn until_parted(yields: bool) -> Result<Duration, Failure> {
    let cores = Arc::new([const { AtomicU64::new(u64::MAX) }; 2]);
    let parted = Arc::new(AtomicBool::new(false));
    let hog = |me: usize| {
        let (cores, parted) = (cores.clone(), parted.clone());
        async move {
            while !parted.load(Ordering::Relaxed) {
                let here = sched::current_core().map_or(u64::MAX, |core| core.index() as u64);
                cores[me].store(here, Ordering::Relaxed);
                let there = cores[1 - me].load(Ordering::Relaxed);
                if there != u64::MAX && there != here {
                    parted.store(true, Ordering::Relaxed);
                }
                if yields {
                    yield_now().await;
                }
            }
        }
    };
    let (first, second) = (hog(0), hog(1));
    // Both begin on one core, in one go.
    let started = Spawn::new().pinned(CoreId::BOOT).start(async move {
        let first = Spawn::new().start(first);
        (first, Spawn::new().start(second), Instant::now())
    })?;
    let Ok((first, second, began)) = started.await else { return Err("the parent crashed".into()) };
    for hog in [first?, second?] {
        if hog.await.is_err() {
            return Err("a hog crashed".into());
        }
    }
    Ok(began.elapsed())
}

kernel_test! {
    /// Within two slices, under every victim rule, and with every threshold as strict and as lenient as it goes.
    #[cores(2)]
    async fn two_hogs_part_within_two_slices() -> Outcome {
        needs_counted_time()?;
        let strict = THRESHOLDS.map(|(setting, strict, _)| (setting, strict));
        let lenient = THRESHOLDS.map(|(setting, _, lenient)| (setting, lenient));
        let mut choices: Vec<Vec<(Setting, u64)>> = Vec::new();
        choices.push(Vec::new());
        choices.extend(strict.iter().chain(&lenient).map(|one| alloc::vec![*one]));
        choices.push(strict.to_vec());
        choices.push(lenient.to_vec());
        let mut longest = Duration::ZERO;
        for rule in VictimRule::ALL {
            let _rule = Changed::new(&[(Setting::VictimRule, rule as u64)])?;
            for choice in &choices {
                let _choice = Changed::new(choice)?;
                let took = until_parted(false).await?;
                longest = longest.max(took);
                within(took, 2 * slice() + SLACK, &alloc::format!("until parted, {rule:?}, {choice:?}"))?;
            }
        }
        magpie::log::text!("two hogs part within {} us", longest.as_micros());
        Ok(())
    }
}

/// Thieves find little on this core, again and again: processes that end in one turn each.
async fn have_thieves_come_in_vain() -> Result<(), Failure> {
    for _ in 0..20 {
        let started = Spawn::new().pinned(CoreId::BOOT).start(async {
            let processes: Result<Vec<_>, _> = (0..64).map(|_| sched::spawn(async {})).collect();
            for process in processes? {
                let _ = process.await;
            }
            Ok::<(), SpawnError>(())
        })?;
        started.await??;
    }
    Ok(())
}

kernel_test! {
    /// Two that yield all the time wait for no thief but on one core. After those that came in vain the next comes after sixteen waits at most.
    #[cores(2)]
    async fn two_that_yield_part_though_thieves_came_in_vain() -> Outcome {
        needs_counted_time()?;
        // The balancer would part them in the end.
        let _no_balancer = Changed::new(&[
            (Setting::BalanceMicroseconds, FOREVER_MICROSECONDS),
            (Setting::BalanceLoadedMicroseconds, FOREVER_MICROSECONDS),
            (Setting::BalanceQuietMicroseconds, FOREVER_MICROSECONDS),
        ])?;
        let wait = Duration::from_micros(sched::setting(Setting::ShareWaitMicroseconds));
        let mut longest = Duration::ZERO;
        for _ in 0..5 {
            have_thieves_come_in_vain().await?;
            longest = longest.max(until_parted(true).await?);
        }
        magpie::log::text!("two that yield part within {} us", longest.as_micros());
        within(longest, 16 * wait + 2 * slice() + SLACK, "until parted")
    }
}

kernel_test! {
    /// What waits below something urgent that yields all the time has no turn on its core: a process that was started there, and the one that has made
    /// way. Thieves take both in the end, though they came in vain before. When is not promised: the one that has made way waited for 3 to 50 ms.
    #[cores(2)]
    async fn nothing_waits_below_short_urgent_turns_for_ever() -> Outcome {
        needs_counted_time()?;
        let mut longest = Duration::ZERO;
        for _ in 0..5 {
            have_thieves_come_in_vain().await?;
            let began = Instant::now();
            let stop = Arc::new(AtomicBool::new(false));
            let over = stop.clone();
            let urgent = Spawn::new().pinned(CoreId::BOOT).priority(Priority::High).start(async move {
                let below = Spawn::new().priority(Priority::Normal).start(async move { began.elapsed() });
                while !over.load(Ordering::Relaxed) {
                    yield_now().await;
                }
                below
            })?;
            // This one may have made way.
            longest = longest.max(began.elapsed());
            time::sleep(4 * slice()).await;
            stop.store(true, Ordering::Relaxed);
            longest = longest.max(urgent.await??.await?);
        }
        magpie::log::text!("below short urgent turns for {} us", longest.as_micros());
        Ok(())
    }
}

kernel_test! {
    /// A core with a turn that never ends fetches from one that has more, though it is not idle: at its next
    /// interval, which is 100 ms at most, and the end of a turn.
    #[cores(2)]
    async fn a_busy_core_balances_within_its_interval() -> Outcome {
        const LONGEST_INTERVAL: Duration = Duration::from_millis(100);
        needs_counted_time()?;
        let stop = Arc::new(AtomicBool::new(false));
        let mut lone = Vec::new();
        for core in (1..machine::cores()).filter_map(CoreId::new) {
            let stop = stop.clone();
            lone.push(Spawn::new().pinned(core).start(async move {
                while !stop.load(Ordering::Relaxed) {
                    core::hint::spin_loop();
                }
            })?);
        }
        // Every core is in its endless turn before there is more than one on the first.
        time::sleep(4 * slice()).await;
        let moved_at = Arc::new(AtomicU64::new(u64::MAX));
        let (seen, over) = (moved_at.clone(), stop.clone());
        let started = Spawn::new().pinned(CoreId::BOOT).start(async move {
            let began = Instant::now();
            let hog = || {
                let (seen, over) = (seen.clone(), over.clone());
                async move {
                    while !over.load(Ordering::Relaxed) {
                        if sched::current_core() != Some(CoreId::BOOT) {
                            seen.fetch_min(began.elapsed().as_micros() as u64, Ordering::Relaxed);
                            over.store(true, Ordering::Relaxed);
                        }
                    }
                }
            };
            (0..4).map(|_| Spawn::new().start(hog())).collect::<Vec<_>>()
        })?;
        let Ok(started) = started.await else { return Err("the parent crashed".into()) };
        for hog in started.into_iter().flatten().chain(lone) {
            ensure!(hog.await.is_ok(), "a hog crashed");
        }
        let took = Duration::from_micros(moved_at.load(Ordering::Relaxed));
        magpie::log::text!("a busy core fetches after {} us", took.as_micros());
        within(took, LONGEST_INTERVAL + 2 * slice() + SLACK, "until a busy core fetched from a busier one")
    }
}
