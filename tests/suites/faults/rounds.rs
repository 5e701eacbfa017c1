//! The suite's body: round after round of crashes beside innocents, each with executors of its own. What is stated holds after each: all
//! watches have told, all messages have come, nobody lives who should not, and memory has not grown by more than is said.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Config, Executor, Limits};
use magpie::internals::Random;
use magpie::internals::mem::heap::HEAP;
use magpie::internals::mem::stack;
use magpie::internals::sched::reserves;
use magpie::mem::MemoryLimit;
use magpie::sched::{self, Setting};
use magpie::time::Instant;
use magpie::{crash, machine, stats};
use magpie_tests::{Changed, Failure, Outcome, amount, ensure, ensure_eq, kernel_test};

use crate::innocents::Innocents;
use crate::ledger::Ledger;
use crate::moments::Sink;
use crate::unrest::Unrest;
use crate::victims::{CULPRITS, Scene};
use crate::watchers::Watchers;
use crate::{all_meters_are_free, seed, trees};

/// Ends in one round: victims and leaves.
const ENDS: u64 = 500;
/// Watches for each of them, the kernel's own among them.
const WATCHES: usize = 128;
/// Rounds before memory is compared, in which tables and caches grow to their sizes.
const WARM_UP: u64 = 2;

/// What a crash may leave on average.
const BYTES_PER_CRASH: u64 = 200;
/// What cores may keep besides, each.
const BYTES_PER_CORE: u64 = 256 * 1024;

const NAMES: [[&str; 4]; 2] =
    [["tree 0", "tree 0 a", "tree 0 b", "tree 0 c"], ["tree 1", "tree 1 a", "tree 1 b", "tree 1 c"]];

/// What rounds have done.
#[derive(Default, Debug)]
struct Totals {
    ends: u64,
    trees: u64,
    gave_up: u64,
    watches: u64,
    messages: u64,
    offline: u64,
}

/// Free stacks: those of the pool, and what cores have in reserve.
fn free_stacks() -> u32 {
    stack::usage().1 + reserves()
}

/// How many ends are still to come, for those who cause them.
struct Quota(AtomicU64);

impl Quota {
    fn take(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok()
    }

    fn give(&self, ends: u64) {
        let _ =
            self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| Some(left.saturating_sub(ends)));
    }
}

/// One round. On every other one half of the cores have no workers, and come and go.
async fn round(
    ledger: &'static Ledger,
    limits: Limits,
    (number, seed): (u64, u64),
    ends: u64,
    totals: &mut Totals,
) -> Outcome {
    let random = |who: usize| Random::new(seed.wrapping_add(number), who);
    let workers = if number.is_multiple_of(2) { machine::cores() } else { machine::cores().div_ceil(2) };
    let config = Config::default().workers(workers);
    let executor = Executor::start(&config)?;
    let handle = executor.handle().clone();
    let (watchers, company) = Watchers::start(&handle, &config, ledger).await?;
    let innocents = Innocents::start(&handle)?;
    let unrest = Unrest::start(random(0), handle.cores())?;
    let handled = Arc::new(AtomicU64::new(0));
    let mut sinks = Vec::new();
    for _ in 0..12 {
        sinks.push(handle.spawn(Sink { handled: handled.clone() })?);
    }
    let scene = Scene {
        handle: handle.clone(),
        watchers,
        sinks: [sinks[0], sinks[1], sinks[2]],
        beside: sinks.clone(),
        limits,
    };
    let quota = Arc::new(Quota(AtomicU64::new(ends)));
    let mut culprits = Vec::new();
    for culprit in 0..CULPRITS {
        let (scene, quota, mut random) = (scene.clone(), quota.clone(), random(1 + culprit));
        culprits.push(sched::spawn(async move {
            let mut ends = 0;
            while quota.take() {
                scene.one(culprit, &mut random).await?;
                ends += 1;
            }
            Ok::<u64, Failure>(ends)
        })?);
    }
    let mut gardeners = Vec::new();
    for (gardener, names) in NAMES.iter().enumerate() {
        let (scene, quota, mut random) = (scene.clone(), quota.clone(), random(101 + gardener));
        gardeners.push(sched::spawn(async move {
            let (mut ends, mut trees, mut gave_up) = (0, 0, 0);
            while quota.take() {
                let (ended, has_given_up) = trees::one(&scene, &mut random, names).await?;
                quota.give(ended);
                ends += ended;
                trees += 1;
                gave_up += u64::from(has_given_up);
            }
            Ok::<_, Failure>((ends, trees, gave_up))
        })?);
    }
    for culprit in culprits {
        totals.ends += culprit.await??;
    }
    for gardener in gardeners {
        let (ends, trees, gave_up) = gardener.await??;
        totals.ends += ends;
        totals.trees += trees;
        totals.gave_up += gave_up;
    }
    totals.offline += unrest.end().await?;
    totals.messages += innocents.end().await?;
    crate::until("all watches have told", || scene.watchers.ledger.is_complete()).await?;
    sched::out_of_work().await;
    drop(scene);
    company.end().await?;
    ensure_eq!(handle.live_actors(), 12 + sinks.len() as u64 + 6, "actors that live");
    ensure!(handle.table_is_whole(), "a mailbox is missing");
    executor.stop().await;
    // After all that could have told twice.
    totals.watches += ledger.judge()?;
    Ok(())
}

kernel_test! {
    /// Crashes of every kind at random points under load, with stealing, while cores go and come: every exit told once, every restart as
    /// predicted, no message of an innocent lost or reordered, memory bounded.
    async fn nothing_is_lost_but_what_crashes() -> Outcome {
        let (seed, ends) = (seed(), amount("crashes", 3000));
        let _slice = Changed::new(&[(Setting::SliceMicroseconds, 200)])?;
        sched::out_of_work().await;
        let (free, began, crashes) = (free_stacks(), Instant::now(), crash::total());
        let ledger = Ledger::leaked(ENDS as usize * WATCHES)?;
        // Not to hold anybody back: some victims pay for what they take.
        let limit = MemoryLimit::new(MemoryLimit::MOST).map_err(|error| Failure(alloc::format!("{error}")))?;
        let limits = Limits::new().memory(&limit);
        let mut totals = Totals::default();
        let (mut used, mut number) = (0, 0);
        while totals.ends < ends {
            let outcome = round(ledger, limits, (number, seed), ENDS.min(ends), &mut totals).await;
            outcome.map_err(|Failure(text)| Failure(alloc::format!("seed={seed}, round {number}: {text}")))?;
            sched::out_of_work().await;
            ensure_eq!(free_stacks(), free, "seed={seed}, round {number}: free stacks");
            number += 1;
            if number == WARM_UP {
                used = HEAP.usage().0 as u64;
            }
            if number > WARM_UP {
                let grown = (HEAP.usage().0 as u64).saturating_sub(used);
                let most = BYTES_PER_CRASH * totals.ends + BYTES_PER_CORE * machine::cores() as u64;
                ensure!(grown <= most, "seed={seed}, round {number}: memory has grown by {grown} bytes: {:?}", stats::collections());
            }
            if number % 10 == 0 || totals.ends >= ends {
                magpie::log::text!(
                    "round {number}, {} s: {totals:?}, {} crashes, {} mailboxes and {} processes stolen, memory grown by {} bytes, {:?}",
                    began.elapsed().as_secs(),
                    crash::total() - crashes,
                    stats::worker_total(|worker| worker.mailboxes_stolen.get()),
                    stats::total(|core| core.processes_stolen.get()),
                    (HEAP.usage().0 as u64).saturating_sub(used),
                    stats::collections(),
                );
            }
        }
        all_meters_are_free().await
    }
}
