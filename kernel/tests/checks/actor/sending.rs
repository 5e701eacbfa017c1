//! Sending: chained, to many, shared, large; and to those who have ended.

use alloc::vec::Vec;

use super::{Dropped, Verdict, count, counter, ensure, equal, failed, start};
use crate::actor::{Actor, Addr, Context, Receive, Recipient, SendError, Shared};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::sched::{self, Setting};

/// Adds up what it is sent.
struct Adder {
    sum: &'static AtomicU64,
    last: u64,
}

impl Actor for Adder {}

impl Receive<u64> for Adder {
    type Reply = ();

    fn receive(&mut self, message: u64, _: &mut Context<Self>) {
        // Only in order does the sum come out.
        if message == self.last + 1 {
            self.sum.fetch_add(message, Ordering::Relaxed);
        }
        self.last = message;
    }
}

impl Receive<Shared<(Dropped, u64)>> for Adder {
    type Reply = ();

    fn receive(&mut self, message: Shared<(Dropped, u64)>, _: &mut Context<Self>) {
        self.sum.fetch_add(message.1, Ordering::Relaxed);
    }
}

impl Receive<[u64; 400]> for Adder {
    type Reply = ();

    fn receive(&mut self, message: [u64; 400], _: &mut Context<Self>) {
        self.sum.fetch_add(message.iter().sum(), Ordering::Relaxed);
    }
}

#[derive(Clone, Copy)]
#[repr(align(64))]
struct Aligned(u8);

impl Receive<Aligned> for Adder {
    type Reply = ();

    fn receive(&mut self, message: Aligned, _: &mut Context<Self>) {
        let is_aligned = (&raw const message).addr().is_multiple_of(64);
        self.sum.fetch_add(if is_aligned { u64::from(message.0) } else { 1_000_000 }, Ordering::Relaxed);
    }
}

/// Another type with the same behaviour.
struct Doubler(&'static AtomicU64);

impl Actor for Doubler {}

impl Receive<u64> for Doubler {
    type Reply = ();

    fn receive(&mut self, message: u64, _: &mut Context<Self>) {
        self.0.fetch_add(2 * message, Ordering::Relaxed);
    }
}

fn chain(to: &Addr<Adder>, from: u64) -> Result<(), SendError<u64>> {
    to.send(from)?.send(from + 1)?.send(from + 2)?;
    Ok(())
}

pub(super) async fn chained_sends_arrive_in_order(work: u64) -> Verdict {
    let executor = start()?;
    let sum = counter();
    let adder = executor.handle().spawn(Adder { sum, last: 0 }).map_err(failed)?;
    let chains = work / 30;
    for number in 0..chains {
        chain(&adder, 3 * number + 1).map_err(failed)?;
    }
    sched::out_of_work().await;
    equal(count(sum), (1..=3 * chains).sum(), "the sum of what arrived in order")?;
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn one_message_to_many(_work: u64) -> Verdict {
    let executor = start()?;
    let (sum, drops) = (counter(), counter());
    let mut adders = Vec::new();
    let mut recipients: Vec<Recipient<u64>> = Vec::new();
    for _ in 0..10 {
        let adder = executor.handle().spawn(Adder { sum, last: 0 }).map_err(failed)?;
        adders.push(adder);
        recipients.push(adder.recipient());
        recipients.push(executor.handle().spawn(Doubler(sum)).map_err(failed)?.recipient());
    }
    Recipient::send_to_all(&recipients, &1).map_err(failed)?;
    sched::out_of_work().await;
    equal(count(sum), 10 + 20, "copies that arrived")?;
    let shared = Shared::new((Dropped(drops), 100)).map_err(failed)?;
    Addr::send_to_all(&adders, &shared).map_err(failed)?;
    drop(shared);
    sched::out_of_work().await;
    equal(count(sum), 30 + 1000, "references that arrived")?;
    equal(count(drops), 1, "drops of the shared message")?;
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn large_messages_arrive_whole(_work: u64) -> Verdict {
    let executor = start()?;
    let sum = counter();
    let adder = executor.handle().spawn(Adder { sum, last: 0 }).map_err(failed)?;
    for _ in 0..100 {
        adder.send(core::array::from_fn::<u64, 400, _>(|i| i as u64)).map_err(failed)?;
        adder.send(Aligned(7)).map_err(failed)?;
    }
    sched::out_of_work().await;
    equal(count(sum), 100 * (400 * 399 / 2 + 7), "what arrived")?;
    equal(executor.stop().await, 0, "messages left over")
}

/// A message whose loss would be noticed.
struct Precious(#[expect(dead_code, reason = "counts when it is dropped")] Dropped);

struct Once;

impl Actor for Once {}

impl Receive<()> for Once {
    type Reply = ();

    fn receive(&mut self, (): (), context: &mut Context<Self>) {
        context.end();
    }
}

impl Receive<Precious> for Once {
    type Reply = ();

    fn receive(&mut self, _: Precious, _: &mut Context<Self>) {}
}

pub(super) async fn an_ended_actor_returns_the_message(_work: u64) -> Verdict {
    let executor = start()?;
    let drops = counter();
    let once = executor.handle().spawn(Once).map_err(failed)?;
    once.send(Precious(Dropped(drops))).map_err(failed)?;
    once.send(()).map_err(failed)?;
    sched::out_of_work().await;
    equal(count(drops), 1, "drops of the message that was handled")?;
    match once.send(Precious(Dropped(drops))) {
        Err(SendError::Ended(message)) => {
            equal(count(drops), 1, "drops before the message was given up")?;
            drop(message);
        }
        Err(error) => return Err(failed(error)),
        Ok(_) => return Err("an ended actor was sent a message".into()),
    }
    equal(count(drops), 2, "drops afterwards")?;
    // While it is still in the mailbox: sent before the end, dropped with it.
    let late = executor.handle().spawn(Once).map_err(failed)?;
    ensure!(late.is_alive(), "a new actor is alive");
    late.send(()).map_err(failed)?;
    let _ = late.send(Precious(Dropped(drops)));
    sched::out_of_work().await;
    equal(count(drops), 3, "drops of a message that came too late")?;
    executor.stop().await;
    equal(count(drops), 3, "drops after the executor was stopped")
}

/// A send costs the process that makes it a reduction: one that does nothing else is asked to yield in the end.
pub(super) async fn sends_are_charged(_work: u64) -> Verdict {
    let turn = sched::setting(Setting::Reductions);
    let executor = start()?;
    let adder = executor.handle().spawn(Adder { sum: counter(), last: 0 }).map_err(failed)?;
    // A new turn, with all of its reductions.
    sched::yield_now().await;
    let mut sent = 0;
    while !sched::is_exhausted() && sent <= turn {
        sent += 1;
        adder.send(sent).map_err(failed)?;
    }
    executor.stop().await;
    ensure!(sent <= turn && sent + 10 >= turn, "{sent} sends used up a turn of {turn} reductions");
    Ok(())
}
