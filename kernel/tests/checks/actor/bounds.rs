//! Mailboxes with a bound, and mailboxes that grow.

use super::{Dropped, Verdict, count, counter, ensure, equal, failed, unsuspended};
use crate::actor::{Actor, Bound, Config, Context, Executor, Receive, SendError, WhenFull};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::sched;

const BOUND: u32 = 4;
const SENT: u64 = 10;

/// On `Begin` it sends itself `SENT` numbers, which wait until its behaviour has ended.
struct SelfSender {
    refused: &'static AtomicU64,
    first: &'static AtomicU64,
    handled: &'static AtomicU64,
    drops: &'static AtomicU64,
}

impl Actor for SelfSender {}

struct Begin;

struct Number {
    value: u64,
    _dropped: Dropped,
}

impl Receive<Begin> for SelfSender {
    type Reply = ();

    fn receive(&mut self, _: Begin, context: &mut Context<Self>) {
        for value in 1..=SENT {
            match context.address().send(Number { value, _dropped: Dropped(self.drops) }) {
                Ok(_) => {}
                Err(SendError::Full(_)) => _ = self.refused.fetch_add(1, Ordering::Relaxed),
                Err(_) => return context.end(),
            }
        }
    }
}

impl Receive<Number> for SelfSender {
    type Reply = ();

    fn receive(&mut self, message: Number, _: &mut Context<Self>) {
        if self.handled.fetch_add(1, Ordering::Relaxed) == 0 {
            self.first.store(message.value, Ordering::Relaxed);
        }
    }
}

/// How many were refused, the first that was handled, and how many were. Where the sender is suspended, its mail is put
/// aside meanwhile, and makes room.
async fn run(when_full: WhenFull) -> Result<(u64, u64, u64), alloc::string::String> {
    let bound = Bound::new(BOUND, when_full);
    let executor = Executor::start(&Config::default().bound(bound)).map_err(failed)?;
    let (refused, first, handled, drops) = (counter(), counter(), counter(), counter());
    let actor = SelfSender { refused, first, handled, drops };
    executor.handle().spawn(actor).map_err(failed)?.send(Begin).map_err(failed)?;
    sched::out_of_work().await;
    equal(count(drops), SENT, "drops, one for each message")?;
    equal(executor.stop().await, 0, "messages left over")?;
    Ok((count(refused), count(first), count(handled)))
}

pub(super) async fn full_mailboxes_refuse(_work: u64) -> Verdict {
    let expected = (SENT - u64::from(BOUND), 1, u64::from(BOUND));
    equal(unsuspended(|| run(WhenFull::Refuse)).await?, expected, "refused, first, handled")
}

pub(super) async fn full_mailboxes_forget_the_newest(_work: u64) -> Verdict {
    equal(
        unsuspended(|| run(WhenFull::DropNewest)).await?,
        (0, 1, u64::from(BOUND)),
        "refused, first, handled",
    )
}

pub(super) async fn full_mailboxes_forget_the_oldest(_work: u64) -> Verdict {
    let first = SENT - u64::from(BOUND) + 1;
    equal(
        unsuspended(|| run(WhenFull::DropOldest)).await?,
        (0, first, u64::from(BOUND)),
        "refused, first, handled",
    )
}

struct Grower {
    next: u64,
    wrong: &'static AtomicU64,
    handled: &'static AtomicU64,
}

impl Actor for Grower {}

struct Flood(u64);

impl Receive<Flood> for Grower {
    type Reply = ();

    fn receive(&mut self, message: Flood, context: &mut Context<Self>) {
        for number in 0..message.0 {
            // Envelopes of different sizes.
            let sent = if number % 3 == 0 {
                context.address().send([number; 30]).is_ok()
            } else {
                context.address().send(number).is_ok()
            };
            if !sent {
                self.wrong.fetch_add(1, Ordering::Relaxed);
            }
        }
    }
}

impl Grower {
    fn note(&mut self, number: u64) {
        if number != self.next {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.next += 1;
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

impl Receive<u64> for Grower {
    type Reply = ();

    fn receive(&mut self, message: u64, _: &mut Context<Self>) {
        self.note(message);
    }
}

impl Receive<[u64; 30]> for Grower {
    type Reply = ();

    fn receive(&mut self, message: [u64; 30], _: &mut Context<Self>) {
        self.note(if message[0] == message[29] { message[0] } else { u64::MAX });
    }
}

pub(super) async fn a_mailbox_grows_without_loss(work: u64) -> Verdict {
    // All of it lies in one mailbox at once.
    let work = work.min(1_000_000);
    let executor = super::start()?;
    let (wrong, handled) = (counter(), counter());
    let grower = executor.handle().spawn(Grower { next: 0, wrong, handled }).map_err(failed)?;
    grower.send(Flood(work)).map_err(failed)?;
    sched::out_of_work().await;
    equal((count(handled), count(wrong)), (work, 0), "messages handled, and out of order or refused")?;
    // The flood was written while its behaviour ran: one mailbox held all of it, unless that was suspended.
    let high_water = executor.handle().high_water();
    ensure!(high_water.messages > 1, "the most messages in one gulp: {}", high_water.messages);
    let least = high_water.messages as usize * size_of::<u64>();
    ensure!(high_water.bytes >= least, "{high_water:?}");
    equal(executor.stop().await, 0, "messages left over")
}

/// Takes what comes, and its time over it.
struct Slow {
    next: [u64; SENDERS],
    wrong: &'static AtomicU64,
    handled: &'static AtomicU64,
}

const SENDERS: usize = 6;

impl Actor for Slow {}

impl Receive<(usize, u64)> for Slow {
    type Reply = ();

    fn receive(&mut self, (sender, number): (usize, u64), _: &mut Context<Self>) {
        if self.next[sender] != number {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.next[sender] = number + 1;
        self.handled.fetch_add(1, Ordering::Relaxed);
    }
}

/// Every message comes once and in order, from more senders than there is room for messages; and who waits when the actor or
/// its executor ends is told.
pub(super) async fn senders_wait_for_room(work: u64) -> Verdict {
    let config = Config::default().bound(Bound::new(2, WhenFull::Refuse));
    let executor = Executor::start(&config).map_err(failed)?;
    let (wrong, handled) = (counter(), counter());
    let slow = Slow { next: [0; SENDERS], wrong, handled };
    let slow = executor.handle().spawn(slow).map_err(failed)?;
    let each = work / 100;
    let mut senders = alloc::vec::Vec::new();
    for sender in 0..SENDERS {
        let body = async move {
            for number in 0..each {
                slow.send_wait((sender, number)).await.map_err(failed)?;
            }
            Ok::<_, alloc::string::String>(())
        };
        senders.push(sched::spawn(body).map_err(failed)?);
    }
    for sender in senders {
        sender.await.map_err(|error| alloc::format!("{error:?}"))??;
    }
    sched::out_of_work().await;
    equal(count(handled), each * SENDERS as u64, "messages handled")?;
    equal(count(wrong), 0, "messages out of order")?;
    // Given up before it was awaited: nothing is sent.
    drop(slow.send_wait((0, 1_000_000)));
    let waiting = sched::spawn(async move { while slow.send_wait((0, 0)).await.is_ok() {} });
    let waiting = waiting.map_err(failed)?;
    while count(handled) < each * SENDERS as u64 + 10 {
        sched::yield_now().await;
    }
    executor.stop().await;
    waiting.await.map_err(|error| alloc::format!("{error:?}"))?;
    for _ in 0..work / 100 {
        senders_learn_of_the_end(Slow { next: [0; SENDERS], wrong, handled }).await?;
    }
    Ok(())
}

/// An executor stops while senders find its mailbox full, and begin to wait: each is told, or sees that there will never be room.
async fn senders_learn_of_the_end(slow: Slow) -> Verdict {
    let config = Config::default().bound(Bound::new(1, WhenFull::Refuse));
    let executor = Executor::start(&config).map_err(failed)?;
    let slow = executor.handle().spawn(slow).map_err(failed)?;
    let sender = || sched::spawn(async move { while slow.send_wait((0, 0)).await.is_ok() {} });
    let senders = [sender().map_err(failed)?, sender().map_err(failed)?];
    sched::yield_now().await;
    executor.stop().await;
    for sender in senders {
        sender.await.map_err(|error| alloc::format!("{error:?}"))?;
    }
    Ok(())
}
