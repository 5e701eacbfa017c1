//! How many gulps are missed on the balance workloads: C∀'s figure is one in 2000.

use alloc::sync::Arc;
use core::hint::black_box;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::{machine, sched, stats};
use magpie_tests::{Failure, ensure, ensure_eq, kernel_test};

use crate::needs_counted_time;

/// As in the source's balance benchmarks, which are also `bench/`'s: many actors that send to themselves.
const ACTORS: u64 = 2_000;
/// Messages of each, for every four cores. What is missed is missed while the mailboxes spread, so a run must be long enough
/// to show what share of all that is.
const MESSAGES: u64 = 500;
const STEPS: u64 = 200;

struct Balanced {
    left: u64,
    handled: Arc<AtomicU64>,
}

impl Actor for Balanced {}

struct Step;

impl Receive<Step> for Balanced {
    type Reply = ();

    fn receive(&mut self, _: Step, context: &mut Context<Self>) {
        for step in 0..STEPS {
            black_box(step);
        }
        self.left -= 1;
        self.handled.fetch_add(1, Ordering::Relaxed);
        if self.left == 0 || context.address().send(Step).is_err() {
            context.end();
        }
    }
}

/// All actors begin on the first worker, or on every other one. Returns gulps, missed gulps and steals.
async fn balance(every_other: bool) -> Result<[u64; 3], Failure> {
    let counts = || {
        [
            stats::worker_total(|worker| worker.gulps.get()),
            stats::worker_total(|worker| worker.missed_gulps.get()),
            stats::worker_total(|worker| worker.mailboxes_stolen.get()),
        ]
    };
    let before = counts();
    // As many as the source has: with fewer, gulps are larger and fewer, and each theft takes more of them.
    let executor = Executor::start(&Config::default().mailboxes(16 * machine::cores()))?;
    let handle = executor.handle();
    let busy = if every_other { handle.workers().div_ceil(2) } else { 1 };
    let handled = Arc::new(AtomicU64::new(0));
    let messages = MESSAGES * handle.workers().div_ceil(4) as u64;
    for number in 0..ACTORS as usize {
        let actor = Balanced { left: messages, handled: handled.clone() };
        handle.spawn_on(CoreId::new(2 * (number % busy)).ok_or("no such core")?, actor)?.send(Step)?;
    }
    sched::out_of_work().await;
    ensure_eq!(handled.load(Ordering::Relaxed), ACTORS * messages, "messages handled");
    executor.stop().await;
    let after = counts();
    Ok([after[0] - before[0], after[1] - before[1], after[2] - before[2]])
}

kernel_test! {
    /// Fewer than one gulp in 2000 is missed.
    #[cores(2)]
    async fn few_gulps_are_missed() -> Outcome {
        needs_counted_time()?;
        let (mut all_gulps, mut all_missed) = (0, 0);
        for every_other in [false, true] {
            let [gulps, missed, stolen] = balance(every_other).await?;
            magpie::log::text!("{gulps} gulps, {missed} missed, {stolen} mailboxes stolen");
            ensure!(stolen > 0, "no mailbox was stolen");
            all_gulps += gulps;
            all_missed += missed;
        }
        ensure!(all_missed * 2000 < all_gulps, "{all_missed} of {all_gulps} gulps were missed");
        Ok(())
    }
}
