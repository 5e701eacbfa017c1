//! Every message is handled once, in order for each sender and actor, by one core at a time, whoever steals.

use alloc::sync::Arc;
use alloc::vec::Vec;

use super::{Verdict, count, counter, ensure, equal, failed, start_with_thieves};
use crate::actor::{Actor, Addr, Context, MailboxVictim, Receive};
use crate::arch::CoreId;
use crate::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::sched;

const SENDERS: usize = 8;
const RECEIVERS: u64 = 50;

struct Numbered {
    sender: usize,
    number: u64,
}

struct Receiver {
    next: [u64; SENDERS],
    inside: Arc<AtomicBool>,
    wrong: &'static AtomicU64,
    handled: &'static AtomicU64,
}

impl Actor for Receiver {}

impl Receive<Numbered> for Receiver {
    type Reply = ();

    fn receive(&mut self, message: Numbered, _: &mut Context<Self>) {
        let is_alone = !self.inside.swap(true, Ordering::Relaxed);
        if !is_alone || self.next[message.sender] != message.number {
            self.wrong.fetch_add(1, Ordering::Relaxed);
        }
        self.next[message.sender] = message.number + 1;
        self.handled.fetch_add(1, Ordering::Relaxed);
        self.inside.store(false, Ordering::Relaxed);
    }
}

struct Sender {
    to: Arc<Vec<Addr<Receiver>>>,
    sender: usize,
    number: u64,
    last: u64,
}

impl Actor for Sender {}

impl Receive<()> for Sender {
    type Reply = ();

    fn receive(&mut self, (): (), context: &mut Context<Self>) {
        for to in self.to.iter() {
            if to.send(Numbered { sender: self.sender, number: self.number }).is_err() {
                return context.end();
            }
        }
        self.number += 1;
        if self.number == self.last || context.address().send(()).is_err() {
            context.end();
        }
    }
}

/// For every rule of choosing a victim. All begin on the first worker, so that the others must steal.
pub(super) async fn exactly_once_in_order(work: u64) -> Verdict {
    for rule in MailboxVictim::ALL {
        one_rule(rule, work).await.map_err(|error| alloc::format!("{rule:?}: {error}"))?;
    }
    Ok(())
}

async fn one_rule(rule: MailboxVictim, work: u64) -> Verdict {
    let last = (work / (SENDERS as u64 * RECEIVERS)).max(1);
    let executor = start_with_thieves(rule).map_err(failed)?;
    let handle = executor.handle();
    let (wrong, handled) = (counter(), counter());
    let mut receivers = Vec::new();
    for _ in 0..RECEIVERS {
        let inside = Arc::new(AtomicBool::new(false));
        let receiver = Receiver { next: [0; SENDERS], inside, wrong, handled };
        receivers.push(handle.spawn_on(CoreId::BOOT, receiver).map_err(failed)?);
    }
    let to = Arc::new(receivers);
    for sender in 0..SENDERS {
        let sender = Sender { to: to.clone(), sender, number: 0, last };
        handle.spawn_on(CoreId::BOOT, sender).map_err(failed)?.send(()).map_err(failed)?;
    }
    sched::out_of_work().await;
    equal(count(handled), RECEIVERS * last * SENDERS as u64, "messages handled")?;
    equal(count(wrong), 0, "messages out of order, or handled by two cores at once")?;
    ensure!(handle.table_is_whole(), "the table does not hold each mailbox once");
    equal(executor.stop().await, 0, "messages left over")
}
