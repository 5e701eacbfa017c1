//! How long others wait beside a worker whose behaviours are short and never end. A single one that does not end is the business of
//! `actors`.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched::{Priority, Setting, Spawn, yield_now};
use magpie::time::{self, Instant};
use magpie::{machine, stats};
use magpie_tests::{Changed, Failure, ensure, kernel_test};

use crate::{SLACK, needs_counted_time, slice, within};

/// On one core no other's turn counts: what is left are the interrupt, the switch, and the end of a turn, of sixteen mailboxes, in a
/// build with all checks.
const SLACK_ALONE: Duration = Duration::from_micros(20);

fn slack() -> Duration {
    if machine::cores() == 1 { SLACK_ALONE } else { SLACK }
}

/// Sends on what it gets, so many at once, until it is told to stop.
struct Relay {
    next: Option<Addr<Relay>>,
    stop: Arc<AtomicBool>,
    handled: Arc<AtomicU64>,
}

impl Actor for Relay {}

struct Next(Addr<Relay>);

impl Receive<Next> for Relay {
    type Reply = ();

    fn receive(&mut self, Next(next): Next, _: &mut Context<Self>) {
        self.next = Some(next);
    }
}

struct Token;

impl Receive<Token> for Relay {
    type Reply = ();

    fn receive(&mut self, _: Token, _: &mut Context<Self>) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        if let Some(next) = &self.next
            && !self.stop.load(Ordering::Relaxed)
        {
            let _ = next.send(Token);
        }
    }
}

/// What was found beside a worker on the first core.
struct Found {
    /// The longest time between two turns of a process that only yields, and from a timer's end to the turn that it brings about.
    longest_gap: Duration,
    longest_delay: Duration,
    handled: u64,
    suspended: u64,
    cut: u64,
}

/// Looks beside a worker that handles tokens without end, all in one mailbox or each in its own.
async fn beside_relays(mailboxes: usize) -> Result<Found, Failure> {
    const RELAYS: usize = 16;
    const TOKENS_EACH: usize = 200;
    let suspended = || stats::worker_total(|worker| worker.detached_behaviours.get());
    let cut = || stats::worker_total(|worker| worker.cut_batches.get());
    let (stop, handled) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let executor = Executor::start(&Config::default().workers(1).mailboxes(mailboxes))?;
    let mut relays = Vec::new();
    for _ in 0..RELAYS {
        let relay = Relay { next: None, stop: stop.clone(), handled: handled.clone() };
        relays.push(executor.handle().spawn(relay)?);
    }
    for (index, relay) in relays.iter().enumerate() {
        relay.send(Next(relays[(index + 1) % RELAYS]))?;
    }
    for _ in 0..TOKENS_EACH {
        for relay in &relays {
            relay.send(Token)?;
        }
    }
    let before = (suspended(), cut());
    let seen = Spawn::new().pinned(CoreId::BOOT).priority(Priority::Normal).start(async {
        let (mut longest_gap, mut longest_delay) = (Duration::ZERO, Duration::ZERO);
        for round in 0..50 {
            let began = Instant::now();
            yield_now().await;
            longest_gap = longest_gap.max(began.elapsed());
            // With nobody else to run the worker's turn goes on until the timer ends.
            let pause = Duration::from_micros(300 + 130 * round);
            let began = Instant::now();
            time::sleep(pause).await;
            longest_delay = longest_delay.max(began.elapsed().saturating_sub(pause));
        }
        (longest_gap, longest_delay)
    })?;
    let seen = seen.await;
    let after = (suspended(), cut());
    stop.store(true, Ordering::Relaxed);
    executor.stop().await;
    let Ok((longest_gap, longest_delay)) = seen else { return Err("the neighbour crashed".into()) };
    Ok(Found {
        longest_gap,
        longest_delay,
        handled: handled.load(Ordering::Relaxed),
        suspended: after.0 - before.0,
        cut: after.1 - before.1,
    })
}

kernel_test! {
    /// A neighbour of a worker that is never done waits two slices at most. It does not matter in how many batches the mail is, and
    /// hardly any behaviour is suspended for it, because none is long.
    async fn neighbours_wait_two_slices_for_a_dense_worker() -> Outcome {
        needs_counted_time()?;
        for slice_us in [50, 200, 1_000] {
            let running = slice();
            let _changed = Changed::new(&[(Setting::SliceMicroseconds, slice_us)])?;
            // The slice that runs ends as it was begun.
            time::sleep(running).await;
            for mailboxes in [1, 16] {
                let found = beside_relays(mailboxes).await?;
                let what = alloc::format!("beside {mailboxes} mailboxes, with slices of {slice_us} us");
                magpie::log::text!(
                    "{what}, a turn comes after {} us, a timer's after {}; {} messages, {} suspended, {} cut",
                    found.longest_gap.as_micros(),
                    found.longest_delay.as_micros(),
                    found.handled,
                    found.suspended,
                    found.cut
                );
                within(found.longest_gap, 2 * slice() + slack(), &alloc::format!("the gap {what}"))?;
                within(found.longest_delay, 2 * slice() + slack(), &alloc::format!("the delay {what}"))?;
                ensure!(found.suspended <= 10, "{} behaviours were suspended {what}", found.suspended);
            }
        }
        Ok(())
    }
}
