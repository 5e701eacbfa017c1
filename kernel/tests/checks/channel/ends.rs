//! What becomes of messages that cannot be received.

use super::ended;
use crate::actor::checks::{Dropped, Verdict, count, counter, ensure, equal, failed};
use crate::channel::ProcessMailbox;
use crate::message::SendError;
use crate::sched;

pub(super) async fn a_full_mailbox_returns_the_message(_work: u64) -> Verdict {
    let mut mailbox = ProcessMailbox::new(3).map_err(failed)?;
    let to = mailbox.address();
    for number in 0..3 {
        to.send(number).map_err(failed)?;
    }
    for urgent in [false, true] {
        match if urgent { to.send_urgent(9) } else { to.send(9) } {
            Err(SendError::Full(message)) => equal(message, 9, "the message that came back")?,
            _ => return Err("a full mailbox accepted a message".into()),
        }
    }
    equal(mailbox.try_receive(), Some(0), "the first")?;
    to.send(3).map_err(failed)?;
    // What the receiver has taken over, and not received, counts as well.
    equal(mailbox.receive_matching(|&n| n == 2).await, Some(2), "the third")?;
    to.send(4).map_err(failed)?;
    ensure!(matches!(to.send(5), Err(SendError::Full(5))), "a full mailbox accepted a message");
    for expected in [1, 3, 4] {
        equal(mailbox.receive().await, Some(expected), "the next")?;
    }
    equal((mailbox.waiting(), mailbox.high_water()), (0, 3), "messages that wait, and waited")
}

pub(super) async fn a_dropped_mailbox_returns_the_message(_work: u64) -> Verdict {
    const SENT: u64 = 10;
    let drops = counter();
    let mut mailbox = ProcessMailbox::new(100).map_err(failed)?;
    let to = mailbox.address();
    for number in 0..SENT {
        to.send((number, Dropped(drops))).map_err(failed)?;
    }
    let receiver = sched::spawn(async move {
        // One is received, some are taken over and left, more come; then the process ends.
        let received = mailbox.receive_matching(|(number, _)| *number == 4).await;
        received.map(|(number, _)| number)
    });
    equal(receiver.map_err(ended)?.await.map_err(ended)?, Some(4), "what was received")?;
    equal(count(drops), SENT, "drops at the end of the process")?;
    match to.send((10, Dropped(drops))) {
        Err(SendError::Ended((number, _))) => equal(number, 10, "the message that came back")?,
        _ => return Err("a dropped mailbox accepted a message".into()),
    }
    ensure!(matches!(to.send_urgent((11, Dropped(drops))), Err(SendError::Ended(_))), "it accepted another");
    equal(count(drops), SENT + 2, "drops of what came back")
}

pub(super) async fn a_mailbox_without_addresses_says_so(_work: u64) -> Verdict {
    let mut mailbox = ProcessMailbox::new(100).map_err(failed)?;
    equal(mailbox.receive().await, None, "before there was an address")?;
    let to = mailbox.address();
    let another = to.clone();
    to.send(1).map_err(failed)?;
    drop(to);
    another.send(2).map_err(failed)?;
    drop(another);
    equal(mailbox.receive().await, Some(1), "the first message")?;
    equal(mailbox.receive_matching(|&n| n == 3).await, None, "a message that never comes")?;
    equal(mailbox.receive().await, Some(2), "the second message")?;
    equal(mailbox.receive().await, None, "the end")?;
    // A receiver that waits already is told.
    let to = mailbox.address();
    let receiver = sched::spawn(async move { (mailbox.receive().await, mailbox) }).map_err(ended)?;
    let letting_go = sched::spawn(async move {
        for _ in 0..10 {
            sched::yield_now().await;
        }
        drop(to);
    });
    letting_go.map_err(ended)?.await.map_err(ended)?;
    let (received, mailbox) = receiver.await.map_err(ended)?;
    equal(received, None, "the end, while waiting")?;
    // A new address opens it again.
    ensure!(mailbox.address().send(5).is_ok(), "a mailbox that lives refused a message");
    Ok(())
}
