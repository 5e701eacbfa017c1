//! Messages that are sent later: not before their moment, once, or taken back.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Dropped, Verdict, count, counter, ensure, equal, failed, start};
use crate::actor::{Actor, Context, Receive};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::message::SendAfter;
use crate::sched;
use crate::time::{self, Instant};

/// A moment that far off does not come, however long the host takes.
const LONG: Duration = Duration::from_secs(3600);

/// A message that says when it is due.
struct Due {
    moment: Instant,
    _dropped: Dropped,
}

/// Counts what comes, and what comes too early.
struct Clock {
    handled: &'static AtomicU64,
    early: &'static AtomicU64,
}

impl Actor for Clock {}

impl Receive<Due> for Clock {
    type Reply = ();

    fn receive(&mut self, message: Due, _: &mut Context<Self>) {
        self.handled.fetch_add(1, Ordering::Relaxed);
        if Instant::now() < message.moment {
            self.early.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn due(delay: Duration, drops: &'static AtomicU64) -> Due {
    Due { moment: Instant::now() + delay, _dropped: Dropped(drops) }
}

pub(super) async fn messages_come_when_they_are_due(work: u64) -> Verdict {
    let executor = start()?;
    let (handled, early, drops) = (counter(), counter(), counter());
    let clock = executor.handle().spawn(Clock { handled, early }).map_err(failed)?;
    let messages = work / 100;
    for number in 0..messages {
        let delay = Duration::from_micros(number * 7919 % 50_000);
        clock.send_after(delay, due(delay, drops)).map_err(failed)?;
    }
    // A message that is still to be sent is work.
    sched::out_of_work().await;
    equal(count(handled), messages, "messages handled")?;
    equal(count(early), 0, "messages that came too early")?;
    equal(count(drops), messages, "messages dropped")?;
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn each_is_sent_or_taken_back(work: u64) -> Verdict {
    let executor = start()?;
    let (handled, early, drops) = (counter(), counter(), counter());
    let clock = executor.handle().spawn(Clock { handled, early }).map_err(failed)?;
    let each = work / 400;
    // As many processes as make the timers of several cores fire while others cancel.
    let mut taking = Vec::new();
    for process in 0..4 {
        let body = async move {
            let mut taken = 0;
            for round in 0..each {
                let delay = Duration::from_micros((round * 31 + process * 17) % 400);
                let later: Vec<SendAfter<Due>> =
                    (0..4).filter_map(|_| clock.send_after(delay, due(delay, drops)).ok()).collect();
                let far = clock.send_after(LONG, due(LONG, drops)).ok();
                if later.len() != 4 {
                    return None;
                }
                time::sleep(Duration::from_micros(round * 13 % 400)).await;
                for (number, message) in later.into_iter().enumerate() {
                    // One in four is let go on, the others taken back if they are still there.
                    if number > 0 {
                        taken += u64::from(message.cancel().is_some());
                    }
                }
                far?.cancel()?;
            }
            Some(taken)
        };
        taking.push(sched::spawn(body).map_err(|error| alloc::format!("{error:?}"))?);
    }
    let mut taken = 0;
    for process in taking {
        taken += process
            .await
            .map_err(|error| alloc::format!("{error:?}"))?
            .ok_or("out of memory, or a message was sent before its moment")?;
    }
    sched::out_of_work().await;
    let sent = 4 * 4 * each;
    equal(count(handled) + taken, sent, "messages handled or taken back")?;
    equal(count(drops), sent + 4 * each, "messages dropped, with those that were far off")?;
    ensure!(count(handled) >= 4 * each, "{} messages handled", count(handled));
    equal(count(early), 0, "messages that came too early")?;
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn what_cannot_be_sent_is_dropped_once(_work: u64) -> Verdict {
    const DELAY: Duration = Duration::from_millis(5);
    const EACH: u64 = 100;
    let executor = start()?;
    let (handled, early, drops) = (counter(), counter(), counter());
    let began = Instant::now();
    let ended = executor.handle().spawn(Clock { handled, early }).map_err(failed)?;
    ended.send(crate::actor::stop::End).map_err(failed)?;
    let stopped = executor.handle().spawn(Clock { handled, early }).map_err(failed)?;
    for _ in 0..EACH {
        ended.send_after(DELAY, due(DELAY, drops)).map_err(failed)?;
        stopped.send_after(DELAY, due(DELAY, drops)).map_err(failed)?;
    }
    let kept = stopped.send_after(DELAY, due(DELAY, drops)).map_err(failed)?;
    executor.stop().await;
    let stopped_early = began.elapsed() < DELAY;
    sched::out_of_work().await;
    if stopped_early {
        equal(count(handled), 0, "messages handled")?;
    }
    equal(count(drops), 2 * EACH + 1, "messages dropped")?;
    ensure!(!kept.is_pending(), "a message waits after its moment");
    ensure!(kept.cancel().is_none(), "a message was taken back that had been dropped");
    Ok(())
}

/// A message that is sent again and again, and since when.
#[derive(Clone, Copy)]
struct Tick {
    began: Instant,
    period: Duration,
}

/// Counts ticks, and those that come before as many periods have passed.
struct Heart {
    ticks: &'static AtomicU64,
    early: &'static AtomicU64,
}

impl Actor for Heart {}

impl Receive<Tick> for Heart {
    type Reply = ();

    fn receive(&mut self, tick: Tick, _: &mut Context<Self>) {
        let number = self.ticks.fetch_add(1, Ordering::Relaxed) + 1;
        if Instant::now() < tick.began + tick.period * number as u32 {
            self.early.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl Tick {
    fn every(period: Duration) -> Self {
        Self { began: Instant::now(), period }
    }
}

pub(super) async fn an_interval_goes_on_until_it_is_cancelled(_work: u64) -> Verdict {
    const PERIOD: Duration = Duration::from_micros(500);
    let executor = start()?;
    let (ticks, early) = (counter(), counter());
    let heart = executor.handle().spawn(Heart { ticks, early }).map_err(failed)?;
    let interval = heart.send_interval(PERIOD, Tick::every(PERIOD)).map_err(failed)?;
    while count(ticks) < 10 {
        time::sleep(PERIOD).await;
    }
    ensure!(!interval.has_ended(), "it has ended though the actor lives");
    interval.cancel();
    // While it goes on it is work.
    sched::out_of_work().await;
    let before = count(ticks);
    time::sleep(4 * PERIOD).await;
    equal(count(ticks), before, "ticks after it was cancelled")?;
    equal(count(early), 0, "ticks that came too early")?;
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn an_interval_ends_with_its_receiver(_work: u64) -> Verdict {
    const PERIOD: Duration = Duration::from_micros(200);
    let executor = start()?;
    let (ticks, early) = (counter(), counter());
    let heart = || executor.handle().spawn(Heart { ticks, early }).map_err(failed);
    let (first, second) = (heart()?, heart()?);
    let interval = first.send_interval(PERIOD, Tick::every(PERIOD)).map_err(failed)?;
    // Nobody can cancel this one any more.
    drop(second.send_interval(PERIOD, Tick::every(PERIOD)).map_err(failed)?);
    time::sleep(3 * PERIOD).await;
    first.send(crate::actor::stop::End).map_err(failed)?;
    second.send(crate::actor::stop::End).map_err(failed)?;
    // They count as work until they have found nobody.
    sched::out_of_work().await;
    ensure!(interval.has_ended(), "it goes on without a receiver");
    let third = heart()?.send_interval(PERIOD, Tick::every(PERIOD)).map_err(failed)?;
    executor.stop().await;
    sched::out_of_work().await;
    ensure!(third.has_ended(), "it goes on without an executor");
    third.cancel();
    Ok(())
}

pub(super) async fn intervals_are_cancelled_while_they_fire(work: u64) -> Verdict {
    let executor = start()?;
    let (ticks, early) = (counter(), counter());
    let heart = executor.handle().spawn(Heart { ticks, early }).map_err(failed)?;
    let mut cancelling = Vec::new();
    for process in 0..4 {
        let body = async move {
            for round in 0..work / 100 {
                let period = Duration::from_micros(1 + (round * 7 + process) % 40);
                let Ok(interval) = heart.send_interval(period, Tick::every(Duration::ZERO)) else {
                    return false;
                };
                // It fires here, and is cancelled from wherever this goes on.
                time::sleep(Duration::from_micros((round * 13 + process * 5) % 100)).await;
                sched::yield_now().await;
                interval.cancel();
            }
            true
        };
        cancelling.push(sched::spawn(body).map_err(|error| alloc::format!("{error:?}"))?);
    }
    for process in cancelling {
        ensure!(process.await == Ok(true), "no memory for an interval");
    }
    // None goes on.
    sched::out_of_work().await;
    equal(time::pending(), 0, "timers that are pending")?;
    equal(executor.stop().await, 0, "messages left over")
}

pub(super) async fn ticks_do_not_drift(_work: u64) -> Verdict {
    let period = Duration::from_nanos(300_007);
    let first = Instant::now() + period;
    let mut interval = time::interval_at(first, period);
    let mut number = 0;
    for _ in 0..20 {
        let missed = interval.missed();
        let due = interval.tick().await;
        equal(due, first + period * number, "when a tick is due")?;
        ensure!(Instant::now() >= due, "a tick came too early");
        number += 1 + (interval.missed() - missed) as u32;
    }
    let mut interval = time::interval_at(first, period).when_missed(time::Missed::Burst);
    for number in 0..20 {
        equal(interval.tick().await, first + period * number, "when one of many at once is due")?;
    }
    equal(interval.missed(), 0, "what is left out of a burst")
}
