//! Many senders, of both kinds; and who comes first.

use alloc::vec::Vec;

use super::ended;
use crate::actor::checks::{Verdict, ensure, equal, failed, start};
use crate::actor::{Actor, Context, Receive};
use crate::channel::{ProcessAddr, ProcessMailbox};
use crate::message::SendError;
use crate::sched;

/// Who sent it, and its number.
type Numbered = (usize, u64);

const SENDERS: usize = 8;

/// Sends numbers as fast as they are taken.
struct Sender {
    to: ProcessAddr<Numbered>,
    number: usize,
    next: u64,
    count: u64,
}

impl Actor for Sender {}

struct Go;

impl Receive<Go> for Sender {
    type Reply = ();

    fn receive(&mut self, _: Go, context: &mut Context<Self>) {
        while self.next < self.count {
            match self.to.send((self.number, self.next)) {
                Ok(_) => self.next += 1,
                Err(SendError::Full(_)) => break,
                Err(_) => return context.end(),
            }
        }
        // Again, until all are sent.
        if self.next < self.count && context.address().send(Go).is_ok() {
        } else {
            context.end();
        }
    }
}

pub(super) async fn each_senders_messages_come_once_in_order(work: u64) -> Verdict {
    let executor = start()?;
    let each = work / SENDERS as u64;
    let mut mailbox = ProcessMailbox::new(64).map_err(failed)?;
    let mut processes = Vec::new();
    for number in 0..SENDERS {
        let to = mailbox.address();
        if number % 2 == 0 {
            let sender = Sender { to, number, next: 0, count: each };
            executor.handle().spawn(sender).map_err(failed)?.send(Go).map_err(failed)?;
            continue;
        }
        let body = async move {
            for next in 0..each {
                loop {
                    match to.send((number, next)) {
                        Ok(_) => break,
                        Err(SendError::Full(_)) => sched::yield_now().await,
                        Err(error) => return Err(failed(error)),
                    }
                }
            }
            Ok(())
        };
        processes.push(sched::spawn(body).map_err(ended)?);
    }
    let mut next = [0; SENDERS];
    // The senders' addresses go with them: the last message is followed by nothing.
    while let Some((sender, number)) = mailbox.receive().await {
        equal(number, next[sender], "the next message of a sender")?;
        next[sender] += 1;
    }
    equal(next, [each; SENDERS], "messages received")?;
    for process in processes {
        process.await.map_err(ended)??;
    }
    ensure!(mailbox.high_water() <= 64, "{} messages waited at once", mailbox.high_water());
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn urgent_messages_overtake(_work: u64) -> Verdict {
    let mut mailbox = ProcessMailbox::new(100).map_err(failed)?;
    let to = mailbox.address();
    to.send(1).and_then(|to| to.send_urgent(10)).and_then(|to| to.send(2)).map_err(failed)?;
    equal(mailbox.receive().await, Some(10), "the first")?;
    // What the receiver has taken over already is overtaken, too.
    to.send(3).and_then(|to| to.send_urgent(11)).and_then(|to| to.send_urgent(12)).map_err(failed)?;
    for expected in [11, 12, 1, 2, 3] {
        equal(mailbox.receive().await, Some(expected), "the next")?;
    }
    equal(mailbox.try_receive(), None, "what is left")
}
