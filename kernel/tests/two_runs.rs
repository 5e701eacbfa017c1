//! What one run of the scheduler leaves behind does not keep the next one from telling who waits: a program may have several, one after the
//! other, and mailboxes are for ever.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context as Polling, Poll};
use std::time::{Duration, Instant};
use std::{future::poll_fn, pin::Pin};

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, Receive, SendError, SendWait, WhenFull};
use magpie::sched;

/// Many more than are told at once.
const MANY: usize = 300;

/// So many that they are not told before the executor has ended.
const TOO_MANY: usize = 10_000;

/// A mailbox that has not told them by then never will.
const HANGS_AFTER: Duration = Duration::from_secs(60);

#[derive(Debug)]
struct Sink(Arc<AtomicBool>);

impl Actor for Sink {}

/// Take nothing until you are free.
struct Hold;

impl Receive<Hold> for Sink {
    type Reply = ();

    fn receive(&mut self, _: Hold, _: &mut Context<Self>) {
        while !self.0.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
    }
}

struct Item;

impl Receive<Item> for Sink {
    type Reply = ();

    fn receive(&mut self, _: Item, _: &mut Context<Self>) {}
}

fn config() -> Config {
    Config::default().workers(1).mailboxes(1).bound(Bound::new(4, WhenFull::Refuse))
}

/// An actor that is held, and its mailbox is full.
async fn full(free: &Arc<AtomicBool>) -> (Executor, Addr<Sink>) {
    let executor = Executor::start(&config()).expect("it starts");
    let sink = executor.handle().spawn(Sink(free.clone())).expect("there is memory");
    assert!(sink.send(Hold).is_ok());
    let mut refused = 0;
    while refused < 1000 {
        refused = if matches!(sink.send(Item), Err(SendError::Full(_))) { refused + 1 } else { 0 };
        sched::yield_now().await;
    }
    (executor, sink)
}

fn poll(sending: &mut SendWait<Item>, context: &mut Polling<'_>) -> bool {
    Pin::new(sending).poll(context).is_ready()
}

#[test]
fn what_was_left_to_a_loop_that_ended_is_left_to_the_next() {
    let ended = sched::run_on_threads(2, 1, async {
        let free = Arc::new(AtomicBool::new(false));
        let (executor, sink) = full(&free).await;
        let mut kept: Vec<_> = (0..TOO_MANY).map(|_| sink.send_wait(Item)).collect();
        for sending in &mut kept {
            poll_fn(|context| {
                assert!(!poll(sending, context), "there is room");
                Poll::Ready(())
            })
            .await;
            // A turn that is exhausted begins to wait for nothing.
            sched::yield_now().await;
        }
        free.store(true, Ordering::Release);
        // It ends while its loops have most of them to tell, who wait on as those do whose processes have not ended.
        executor.stop().await;
        mem::forget(kept);
    });
    assert!(ended.is_ok());

    let sent = sched::run_on_threads(2, 1, async {
        // Mailboxes are given out the other way round each time. The next one has the one that was left.
        Executor::start(&config()).expect("it starts").stop().await;
        let free = Arc::new(AtomicBool::new(false));
        let (executor, sink) = full(&free).await;
        let (tried, sent) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        for _ in 0..MANY {
            let (tried, sent) = (tried.clone(), sent.clone());
            let sending = async move {
                let mut sending = sink.send_wait(Item);
                poll_fn(|context| {
                    let is_sent = poll(&mut sending, context);
                    tried.fetch_add(1, Ordering::AcqRel);
                    if is_sent { Poll::Ready(()) } else { Poll::Pending }
                })
                .await;
                sent.fetch_add(1, Ordering::AcqRel);
            };
            sched::spawn(sending).expect("there is memory");
        }
        while tried.load(Ordering::Acquire) < MANY as u64 {
            sched::yield_now().await;
        }
        free.store(true, Ordering::Release);
        let began = Instant::now();
        while sent.load(Ordering::Acquire) < MANY as u64 && began.elapsed() < HANGS_AFTER {
            sched::yield_now().await;
        }
        let sent = sent.load(Ordering::Acquire);
        executor.stop().await;
        sent
    });
    assert_eq!(sent.ok(), Some(MANY as u64), "who was told of room, or of the end");
}
