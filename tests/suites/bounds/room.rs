//! How long an urgent sender waits for room behind many others, and somebody urgent for a core that tells many of room.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::mem;
use core::pin::Pin;
use core::sync::atomic::{AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, Receive, WhenFull};
use magpie::arch::CoreId;
use magpie::machine;
use magpie::sched::{self, Priority, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{Failure, ensure_eq, kernel_test};

use crate::crowds::beside_urgent;
use crate::{needs_counted_time, within};

/// The most that a sender waits after there is room, with debug assertions: the others of three are told, and the switch.
const LONGEST: Duration = Duration::from_micros(20);

/// What a behaviour takes, which is much more.
const WORK: Duration = Duration::from_micros(150);

/// Has begun to handle its first message so many nanoseconds after the beginning.
struct Sink {
    beginning: Instant,
    began: Arc<AtomicU64>,
    handled: Arc<AtomicU64>,
    work: Duration,
}

impl Actor for Sink {}

struct Item;

impl Receive<Item> for Sink {
    type Reply = ();

    fn receive(&mut self, _: Item, _: &mut Context<Self>) {
        let now = Instant::now();
        if self.handled.fetch_add(1, Ordering::AcqRel) == 0 {
            self.began.store((now - self.beginning).as_nanos() as u64, Ordering::Release);
        }
        while now.elapsed() < self.work {
            core::hint::spin_loop();
        }
    }
}

/// So many wait for room, and never come when they are told of it.
async fn wait_for_ever(sink: &Addr<Sink>, count: usize) {
    for _ in 0..count {
        let mut sending = sink.send_wait(Item);
        poll_fn(|context| {
            assert!(Pin::new(&mut sending).poll(context).is_pending(), "there is room");
            Poll::Ready(())
        })
        .await;
        mem::forget(sending);
    }
}

/// How long after the first behaviour began, and so after the mailbox was emptied, an urgent sender had room for which so many of that priority
/// wait before it.
async fn wait_behind(others: usize, priority: Priority) -> Result<Duration, Failure> {
    let (beginning, began) = (Instant::now(), Arc::new(AtomicU64::new(0)));
    let executor = Executor::start(&Config::default().workers(1).own_mailboxes(1))?;
    let sink = Sink { beginning, began: began.clone(), handled: Arc::default(), work: WORK };
    let bound = Bound::new(8, WhenFull::Refuse);
    let sink = executor.handle().spawn_bounded(sink, bound).map_err(|error| error.without_actor())?;
    sched::out_of_work().await;
    // Before the worker has a turn.
    let begun = Spawn::new().pinned(CoreId::BOOT).priority(priority).start(async move {
        for _ in 0..8 {
            assert!(sink.send(Item).is_ok(), "it is not full yet");
        }
        wait_for_ever(&sink, others).await;
        Spawn::new().pinned(CoreId::BOOT).priority(Priority::Max).start(async move {
            assert!(sink.send_wait(Item).await.is_ok(), "the actor lives");
            beginning.elapsed()
        })
    })?;
    let sent = begun.await??.await?;
    executor.stop().await;
    Ok(sent.saturating_sub(Duration::from_nanos(began.load(Ordering::Acquire))))
}

kernel_test! {
    /// Who is urgent and waits for room is told first.
    async fn an_urgent_sender_waits_for_no_other() -> Outcome {
        needs_counted_time()?;
        for (others, priority) in [(0, Priority::Normal), (3, Priority::Normal), (100, Priority::Normal), (100, Priority::High)] {
            let waited = wait_behind(others, priority).await?;
            magpie::log::text!("behind {}: {} ns", others as u64, waited.as_nanos() as u64);
            // Behind others that are urgent it is told in its turn, three at a time.
            let most = if priority.is_urgent() { 10 * LONGEST } else { LONGEST };
            if machine::cores() == 1 {
                within(waited, most, "a Max sender")?;
            }
        }
        Ok(())
    }
}

/// Mailboxes that are emptied in one turn, and how many wait for room in each.
const MAILBOXES: usize = 1000;
const SENDERS: usize = 20;

kernel_test! {
    /// Nobody urgent waits for a core's loop that is to tell the senders of many mailboxes.
    async fn many_mailboxes_have_room_at_once() -> Outcome {
        needs_counted_time()?;
        let rules = Config::default().workers(1).own_mailboxes(MAILBOXES).priority(Priority::Low);
        let executor = Executor::start(&rules)?;
        let handled = Arc::new(AtomicU64::new(0));
        let mut sinks = Vec::new();
        for _ in 0..MAILBOXES {
            let beginning = Instant::now();
            let sink = Sink { beginning, began: Arc::default(), handled: handled.clone(), work: Duration::ZERO };
            let bound = Bound::new(1, WhenFull::Refuse);
            sinks.push(executor.handle().spawn_bounded(sink, bound).map_err(|error| error.without_actor())?);
        }
        sched::out_of_work().await;
        // While the worker has no turn.
        let begun = Spawn::new().pinned(CoreId::BOOT).start(async move {
            for sink in &sinks {
                assert!(sink.send(Item).is_ok(), "it is full");
            }
            for sink in &sinks {
                if machine::cores() == 1 {
                    wait_for_ever(sink, SENDERS).await;
                }
            }
        })?;
        begun.await?;
        beside_urgent("many mailboxes that have room", async {
            while handled.load(Ordering::Acquire) < MAILBOXES as u64 {
                time::sleep(Duration::from_millis(1)).await;
            }
            time::sleep(Duration::from_millis(20)).await;
            Ok(())
        })
        .await?;
        ensure_eq!(handled.load(Ordering::Acquire), MAILBOXES as u64, "messages");
        executor.stop().await;
        Ok(())
    }
}
