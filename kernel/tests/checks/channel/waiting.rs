//! Waiting: woken by every message, never in vain, and not beyond a limit.

use core::time::Duration;

use alloc::sync::Arc;

use super::ended;
use crate::actor::checks::{Verdict, ensure, equal, failed};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::channel::ProcessMailbox;
use crate::sched;
use crate::time::{self, Elapsed, Instant};

/// A moment that far off does not come, however long the host takes.
const LONG: Duration = Duration::from_secs(3600);

pub(super) async fn no_wake_up_is_lost(work: u64) -> Verdict {
    // Each waits for the other's message, over and over: one wake-up lost, and both wait for ever.
    let mut here = ProcessMailbox::new(1).map_err(failed)?;
    let mut there = ProcessMailbox::new(1).map_err(failed)?;
    let (to_here, to_there) = (here.address(), there.address());
    let rounds = work / 10;
    let other = sched::spawn(async move {
        let mut count = 0_u64;
        while let Some(number) = there.receive_matching(|_| true).await {
            if to_here.send(number + 1).is_err() {
                break;
            }
            count += 1;
        }
        count
    });
    for round in 0..rounds {
        to_there.send(round).map_err(failed)?;
        equal(here.receive().await, Some(round + 1), "the answer")?;
    }
    drop(to_there);
    equal(other.map_err(ended)?.await.map_err(ended)?, rounds, "messages that the other received")?;
    equal(here.receive().await, None, "what comes after the other's end")
}

pub(super) async fn a_time_limit_loses_nothing(work: u64) -> Verdict {
    const LIMIT: Duration = Duration::from_millis(3);
    let mut mailbox = ProcessMailbox::<u64>::new(100_000).map_err(failed)?;
    let to = mailbox.address();
    let begin = Instant::now();
    equal(mailbox.receive_within(LIMIT).await, Err(Elapsed), "an empty mailbox")?;
    ensure!(begin.elapsed() >= LIMIT, "the limit was {:?}", begin.elapsed());
    to.send(0).map_err(failed)?;
    equal(mailbox.receive_within(Duration::ZERO).await, Ok(Some(0)), "what waits already")?;
    // Limits that are reached at the same time as messages come.
    let messages = (work / 100).min(100_000);
    let limits = Arc::new(AtomicU64::new(0));
    let reached = limits.clone();
    let sender = sched::spawn(async move {
        for number in 0..messages {
            time::sleep(Duration::from_micros(number % 7 * 30)).await;
            // Before the last one a limit is reached, for until then there is nothing to receive.
            while number + 1 == messages && reached.load(Ordering::Relaxed) == 0 {
                sched::yield_now().await;
            }
            to.send(number).map_err(failed)?;
        }
        Ok::<_, alloc::string::String>(())
    });
    let mut next = 0;
    while next < messages {
        let limit = Duration::from_micros(next % 5 * 40);
        let received = if next % 2 == 0 {
            mailbox.receive_within(limit).await
        } else {
            time::timeout(limit, mailbox.receive_matching(|_| true)).await
        };
        match received {
            Ok(Some(number)) => {
                equal(number, next, "the next message")?;
                next += 1;
            }
            Ok(None) => return Err(alloc::format!("the sender ended after {next} messages")),
            Err(Elapsed) => {
                limits.fetch_add(1, Ordering::Relaxed);
                // A limit of nothing never waits, and on the host nobody preempts.
                sched::yield_now().await;
            }
        }
    }
    sender.map_err(ended)?.await.map_err(ended)??;
    equal(mailbox.receive().await, None, "what is left")
}

pub(super) async fn messages_come_when_they_are_due(_work: u64) -> Verdict {
    const DELAY: Duration = Duration::from_millis(2);
    let mut mailbox = ProcessMailbox::new(10).map_err(failed)?;
    let to = mailbox.address();
    let begin = Instant::now();
    to.send_after(DELAY, 1).map_err(failed)?;
    let taken_back = to.send_after(LONG, 2).map_err(failed)?;
    ensure!(taken_back.is_pending(), "a message is gone before its moment");
    equal(taken_back.cancel(), Some(2), "the message that was taken back")?;
    // A message that waits for its moment keeps an address.
    drop(to);
    equal(mailbox.receive().await, Some(1), "the message that was not")?;
    ensure!(begin.elapsed() >= DELAY, "it came after {:?}", begin.elapsed());
    equal(mailbox.receive().await, None, "what comes after it")
}

pub(super) async fn what_finds_no_room_is_left_out(_work: u64) -> Verdict {
    const PERIOD: Duration = Duration::from_micros(300);
    let mut mailbox = ProcessMailbox::new(1).map_err(failed)?;
    let interval = mailbox.address().send_interval(PERIOD, 7).map_err(failed)?;
    // The first fills it.
    while interval.missed() < 3 {
        time::sleep(PERIOD).await;
    }
    equal(mailbox.waiting(), 1, "messages that wait")?;
    equal(mailbox.receive().await, Some(7), "the first")?;
    equal(mailbox.receive().await, Some(7), "the next")?;
    // It has the last address, which it gives up when it finds nobody.
    drop(mailbox);
    sched::out_of_work().await;
    ensure!(interval.has_ended(), "it goes on without a receiver");
    let mut mailbox = ProcessMailbox::new(1).map_err(failed)?;
    let interval = mailbox.address().send_interval(PERIOD, 8).map_err(failed)?;
    equal(mailbox.receive().await, Some(8), "the first for another")?;
    interval.cancel();
    // That was the last address; one more may have been sent.
    while mailbox.receive().await.is_some() {}
    Ok(())
}
