//! How long something urgent waits behind a worker that has as many mailboxes in hand as it may, all of which are to go back when its
//! behaviour is suspended.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::machine;
use magpie::sched::{self, Priority, Spawn};
use magpie::stats;
use magpie::time::{self, Instant};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

use crate::{needs_counted_time, within};

/// More mailboxes than a worker takes in hand.
const MAILBOXES: usize = 192;

/// A quarter of what it takes to put all back that a worker may have in hand, on one core. Each other core has its instructions counted on the
/// same clock, before the urgent one is fired and once more before it runs.
const LONGEST: Duration = Duration::from_micros(8);

struct Waiting(Arc<AtomicU64>);

impl Actor for Waiting {}

struct Message;

impl Receive<Message> for Waiting {
    type Reply = ();

    fn receive(&mut self, _: Message, _: &mut Context<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

/// Has sent to all, and runs on.
struct Long(Vec<Addr<Waiting>>);

impl Actor for Long {}

struct Until(Instant);

impl Receive<Until> for Long {
    type Reply = bool;

    fn receive(&mut self, Until(end): Until, _: &mut Context<Self>) -> bool {
        let all_are_sent = self.0.iter().all(|waiting| waiting.send(Message).is_ok());
        while Instant::now() < end {
            core::hint::spin_loop();
        }
        all_are_sent
    }
}

/// The longest that a process of one priority was late on the core of an executor of another, of so many moments. Others wait for the core, too,
/// as urgent as the executor, or nobody does.
async fn longest(
    rounds: u64,
    (executors, urgents): (Priority, Priority),
    others_wait: bool,
) -> Result<Duration, Failure> {
    let executor = Executor::start(&Config::default().workers(1).mailboxes(MAILBOXES).priority(executors))?;
    let handled = Arc::new(AtomicU64::new(0));
    let waiting = (0..MAILBOXES).map(|_| executor.handle().spawn(Waiting(handled.clone())));
    // On another core, where it might go on, it would keep this one from being emulated.
    let long = executor.handle().spawn_pinned(CoreId::BOOT, Long(waiting.collect::<Result<_, _>>()?))?;
    let stop = Arc::new(AtomicU64::new(0));
    let other = stop.clone();
    let other = Spawn::new().pinned(CoreId::BOOT).priority(executors).start(async move {
        while others_wait && other.load(Ordering::Relaxed) == 0 {
            sched::yield_now().await;
        }
    })?;
    let mut longest = Duration::ZERO;
    for round in 0..rounds {
        // Before a slice has ended, behind that, and in between.
        let moment = Instant::now() + Duration::from_micros(300 + round * 37 % 2000);
        let urgent = Spawn::new().pinned(CoreId::BOOT).priority(urgents).start(async move {
            time::sleep_until(moment).await;
            moment.elapsed()
        })?;
        ensure!(long.ask(Until(moment + Duration::from_micros(200))).await?, "a message was refused");
        longest = longest.max(urgent.await?);
    }
    stop.store(1, Ordering::Relaxed);
    other.await?;
    sched::out_of_work().await;
    executor.stop().await;
    ensure_eq!(handled.load(Ordering::Relaxed), rounds * MAILBOXES as u64, "messages handled");
    Ok(longest)
}

kernel_test! {
    /// Neither where it interrupts the behaviour nor where that was suspended at the end of a slice.
    async fn what_is_urgent_does_not_wait_for_all_to_go_back() -> Outcome {
        needs_counted_time()?;
        let most = || stats::worker_total(|worker| worker.most_in_hand.get());
        for priorities in [(Priority::Normal, Priority::High), (Priority::High, Priority::Max)] {
            for others_wait in [false, true] {
                // As urgent as the executor, or those that wait would keep it waiting.
                let tries = longest(amount("rounds", 100), priorities, others_wait);
                let longest = Spawn::new().priority(priorities.0).start(tries)?.await??;
                magpie::log::text!(
                    "{priorities:?}, others wait: {others_wait}; {} in hand at most, {} ns late at most",
                    most(), longest.as_nanos()
                );
                ensure!(most() >= 100, "only {} were in hand", most());
                within(longest, LONGEST * (2 * machine::cores() as u32 - 1), "something urgent")?;
            }
        }
        Ok(())
    }
}
