//! Many who wait for room in one bounded mailbox: all are told, whatever becomes of those who are told first.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::{pending, poll_fn};
use core::pin::Pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;

use magpie::actor::{Actor, Addr, Bound, Config, Context, Executor, Receive, SendError, WhenFull};
use magpie::sched::{self, JoinHandle};
use magpie_tests::{Failure, HeapExhauster, amount, ensure, ensure_eq, kernel_test};

const BOUND: u32 = 8;

/// More than are told at once, and than have room without the heap.
const SENDERS: u64 = 200;

#[derive(Default)]
struct Seen {
    handled: AtomicU64,
    /// How many have tried to send.
    tried: AtomicU64,
    free: AtomicBool,
}

struct Sink(Arc<Seen>);

impl Actor for Sink {}

#[derive(Debug, PartialEq)]
struct Item;

impl Receive<Item> for Sink {
    type Reply = ();

    fn receive(&mut self, _: Item, _: &mut Context<Self>) {
        self.0.handled.fetch_add(1, Ordering::AcqRel);
    }
}

/// Take nothing until you are free, and perhaps nothing then.
struct Hold {
    ends: bool,
}

impl Receive<Hold> for Sink {
    type Reply = ();

    fn receive(&mut self, hold: Hold, context: &mut Context<Self>) {
        while !self.0.free.load(Ordering::Acquire) {
            core::hint::spin_loop();
        }
        if hold.ends {
            context.end();
        }
    }
}

/// An executor with one such actor, whose mailbox is full.
async fn full(ends: bool) -> Result<(Executor, Addr<Sink>, Arc<Seen>), Failure> {
    let seen = Arc::new(Seen::default());
    let executor = Executor::start(&Config::default().own_mailboxes(1))?;
    let bound = Bound::new(BOUND, WhenFull::Refuse);
    let sink =
        executor.handle().spawn_bounded(Sink(seen.clone()), bound).map_err(|error| error.without_actor())?;
    sink.send(Hold { ends })?;
    // It may be taken out of the mailbox, and put aside, meanwhile.
    let mut refused = 0;
    while refused < 30 {
        match sink.send(Item) {
            Ok(_) => refused = 0,
            Err(SendError::Full(_)) => refused += 1,
            Err(error) => return Err(error.into()),
        }
        sched::yield_now().await;
    }
    Ok((executor, sink, seen))
}

/// A process that sends one message.
type Sending = JoinHandle<Result<(), SendError<Item>>>;

/// Such processes, all of which have tried.
async fn senders(sink: Addr<Sink>, seen: &Arc<Seen>) -> Result<Vec<Sending>, Failure> {
    let before = seen.tried.load(Ordering::Acquire);
    let mut all = Vec::new();
    for _ in 0..SENDERS {
        let seen = seen.clone();
        all.push(sched::spawn(async move {
            let mut sending = sink.send_wait(Item);
            poll_fn(|context| {
                let result = Pin::new(&mut sending).poll(context);
                seen.tried.fetch_add(1, Ordering::AcqRel);
                result
            })
            .await
        })?);
    }
    while seen.tried.load(Ordering::Acquire) < before + SENDERS {
        sched::yield_now().await;
    }
    Ok(all)
}

kernel_test! {
    #[machine("preemption")]
    async fn all_who_wait_for_room_get_it() -> Outcome {
        for _ in 0..amount("rounds", 3) {
            let (executor, sink, seen) = full(false).await?;
            let senders = senders(sink, &seen).await?;
            seen.free.store(true, Ordering::Release);
            for sender in senders {
                ensure_eq!(sender.await, Ok(Ok(())), "whether it was sent");
            }
            sched::out_of_work().await;
            ensure!(seen.handled.load(Ordering::Acquire) >= SENDERS, "messages were lost");
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// Nobody waits for ever for an actor that has ended.
    #[machine("preemption")]
    async fn all_who_wait_for_room_hear_of_the_end() -> Outcome {
        for _ in 0..amount("rounds", 3) {
            let (executor, sink, seen) = full(true).await?;
            let senders = senders(sink, &seen).await?;
            seen.free.store(true, Ordering::Release);
            // There was room for a few more while messages were put aside for it.
            let ended = how_many_ended(senders).await?;
            ensure!(ended > SENDERS / 2, "only {ended} waited until the end");
            ensure_eq!(seen.handled.load(Ordering::Acquire), 0, "messages handled");
            executor.stop().await;
        }
        Ok(())
    }
}

/// Waits until all know what has become of their message; how many were told that nobody can have it.
async fn how_many_ended(senders: Vec<Sending>) -> Result<u64, Failure> {
    let mut ended = 0;
    for sender in senders {
        match sender.await {
            Ok(Err(SendError::Ended(Item))) => ended += 1,
            Ok(Ok(())) => {}
            other => return Err(alloc::format!("it was told {other:?}").into()),
        }
    }
    Ok(ended)
}

kernel_test! {
    /// Nor for an executor that stops, also who comes while it does.
    #[machine("preemption")]
    async fn all_who_wait_for_room_hear_of_the_stop() -> Outcome {
        for _ in 0..amount("rounds", 3) {
            let (executor, sink, seen) = full(false).await?;
            let early = senders(sink, &seen).await?;
            let late = sched::spawn({
                let seen = seen.clone();
                async move { senders(sink, &seen).await }
            })?;
            let stopping = executor.stop();
            seen.free.store(true, Ordering::Release);
            stopping.await;
            let Ok(late) = late.await else { return Err("a process crashed".into()) };
            let ended = how_many_ended(early).await? + how_many_ended(late?).await?;
            ensure!(ended > SENDERS / 2, "only {ended} waited until the end");
        }
        Ok(())
    }
}

kernel_test! {
    /// Who finds no memory to wait in tries again and again, and is told of room, or that there is no memory for the message.
    #[machine("preemption")]
    async fn who_waits_for_room_may_find_no_memory() -> Outcome {
        for _ in 0..amount("rounds", 3) {
            let (executor, sink, seen) = full(false).await?;
            let begins = Arc::new(AtomicBool::new(false));
            let mut senders = Vec::new();
            for _ in 0..SENDERS {
                let (begins, seen) = (begins.clone(), seen.clone());
                senders.push(sched::spawn(async move {
                    while !begins.load(Ordering::Acquire) {
                        sched::yield_now().await;
                    }
                    seen.tried.fetch_add(1, Ordering::AcqRel);
                    sink.send_wait(Item).await
                })?);
            }
            let exhauster = HeapExhauster::everything(16);
            begins.store(true, Ordering::Release);
            while seen.tried.load(Ordering::Acquire) < SENDERS {
                sched::yield_now().await;
            }
            seen.free.store(true, Ordering::Release);
            for _ in 0..20 {
                sched::yield_now().await;
            }
            // The actor may need some to go on.
            drop(exhauster);
            let mut told = 0;
            for sender in &mut senders {
                match sender.await {
                    Ok(Ok(()) | Err(SendError::OutOfMemory(Item))) => told += 1,
                    other => return Err(alloc::format!("it was told {other:?}").into()),
                }
            }
            ensure_eq!(told, SENDERS, "who knows what has become of a message");
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// Half of those who wait are killed while they are told, the first ones among them.
    #[machine("preemption")]
    async fn who_was_told_of_room_may_be_killed() -> Outcome {
        for _ in 0..amount("rounds", 3) {
            let (executor, sink, seen) = full(false).await?;
            let (killed, others) = (senders(sink, &seen).await?, senders(sink, &seen).await?);
            seen.free.store(true, Ordering::Release);
            for sender in &killed {
                sender.process().kill();
            }
            for sender in others {
                ensure_eq!(sender.await, Ok(Ok(())), "whether it was sent");
            }
            drop(killed);
            sched::out_of_work().await;
            executor.stop().await;
        }
        Ok(())
    }
}

kernel_test! {
    /// Who keeps futures that were told of room, and polls none of them, holds up nobody else.
    #[machine("preemption")]
    async fn who_was_told_of_room_may_not_come() -> Outcome {
        for _ in 0..amount("rounds", 3) {
            let (executor, sink, seen) = full(false).await?;
            let waiting = seen.clone();
            let keeper = sched::spawn(async move {
                let mut kept: Vec<_> = (0..SENDERS).map(|_| sink.send_wait(Item)).collect();
                poll_fn(|context| {
                    // What is put aside for the actor may make room for a few.
                    kept.retain_mut(|sending| Pin::new(sending).poll(context).is_pending());
                    waiting.tried.store(1, Ordering::Release);
                    Poll::Ready(())
                })
                .await;
                pending::<()>().await;
                drop(kept);
            })?;
            while seen.tried.load(Ordering::Acquire) == 0 {
                sched::yield_now().await;
            }
            let others = senders(sink, &seen).await?;
            seen.free.store(true, Ordering::Release);
            for sender in others {
                ensure_eq!(sender.await, Ok(Ok(())), "whether it was sent");
            }
            keeper.process().kill();
            ensure!(keeper.await.is_err(), "it has come to its end");
            sched::out_of_work().await;
            executor.stop().await;
        }
        Ok(())
    }
}
