//! Selective receive.

use super::ended;
use crate::actor::checks::{Verdict, counter, ensure, equal, failed};
use crate::arch::atomic::Ordering;
use crate::channel::ProcessMailbox;
use crate::sched;

pub(super) async fn what_does_not_match_stays_in_order(_work: u64) -> Verdict {
    let mut mailbox = ProcessMailbox::new(100).map_err(failed)?;
    let to = mailbox.address();
    for number in 0..30_u32 {
        to.send(number).map_err(failed)?;
    }
    for number in (0..30).filter(|number| number % 3 == 1) {
        equal(mailbox.receive_matching(|n| n % 3 == 1).await, Some(number), "the next that matches")?;
    }
    for number in (0..30).rev().filter(|number| number % 3 == 2) {
        equal(mailbox.receive_matching(|&n| n == number).await, Some(number), "a certain message")?;
    }
    to.send(30).map_err(failed)?;
    for number in (0..=30).filter(|number| number % 3 == 0) {
        equal(mailbox.receive().await, Some(number), "the next that was left")?;
    }
    equal(mailbox.waiting(), 0, "messages that wait")
}

pub(super) async fn no_message_is_looked_at_twice(work: u64) -> Verdict {
    let messages = (work / 20).max(100);
    let mut mailbox = ProcessMailbox::new(messages as usize).map_err(failed)?;
    let to = mailbox.address();
    let sender = sched::spawn(async move {
        for number in 0..messages {
            to.send(number).map_err(failed)?;
            // The receiver wakes now and then, and finds nothing that matches.
            if number % 16 == 0 {
                sched::yield_now().await;
            }
        }
        Ok::<_, alloc::string::String>(())
    });
    let looked = counter();
    let last = mailbox.receive_matching(|&number| {
        looked.fetch_add(1, Ordering::Relaxed);
        number == messages - 1
    });
    equal(last.await, Some(messages - 1), "the last message")?;
    equal(looked.load(Ordering::Relaxed), messages, "looks")?;
    sender.map_err(ended)?.await.map_err(ended)??;
    for number in 0..messages - 1 {
        equal(mailbox.receive().await, Some(number), "the next that was left")?;
    }
    equal(mailbox.receive_matching(|_| true).await, None, "what is left at the end")
}

pub(super) async fn an_urgent_match_goes_first(_work: u64) -> Verdict {
    let mut mailbox = ProcessMailbox::new(100).map_err(failed)?;
    let to = mailbox.address();
    to.send(1).and_then(|to| to.send(2)).map_err(failed)?;
    // Both are taken over now, and neither matches.
    let nothing = mailbox.receive_matching(|&n| n > 10);
    ensure!(crate::time::timeout(core::time::Duration::ZERO, nothing).await.is_err(), "a match");
    to.send_urgent(3).and_then(|to| to.send_urgent(4)).map_err(failed)?;
    equal(mailbox.receive_matching(|n| n % 2 == 0).await, Some(4), "the first even number")?;
    equal(mailbox.receive_matching(|n| n % 2 == 0).await, Some(2), "the next even number")?;
    equal(mailbox.receive().await, Some(3), "the urgent one that was left")?;
    equal(mailbox.receive().await, Some(1), "the ordinary one")
}
