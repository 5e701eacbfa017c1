//! Timers: their order, what a core publishes of them, and messages as timers in number.

use alloc::sync::Arc;
use core::future::{Future, poll_fn};
use core::pin::pin;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::task::Poll;
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::channel::ProcessMailbox;
use magpie::internals::arch::clock::frequency;
use magpie::internals::time::{next_deadline, next_urgent_deadline};
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::stats;
use magpie::time::{self, Instant};
use magpie_tests::{Failure, amount, ensure, ensure_eq, kernel_test};

/// Far enough that it does not come, and nearer than what limits a test.
const FAR: Duration = Duration::from_secs(10);

/// Whether a timer for `moment` is the next of this core's, and whether it is the next urgent one: that is due earlier, by the lead.
fn is_next(moment: Instant) -> (bool, bool) {
    let Some(core) = sched::current_core() else { return (false, false) };
    let [next, urgent] = [next_deadline(core), next_urgent_deadline(core)];
    // A thread of the host is woken when it is, and no timer interrupts it.
    let lead_us = if cfg!(target_os = "none") { sched::setting(Setting::LeadMicroseconds) } else { 0 };
    let early = moment.ticks() - lead_us * frequency() / 1_000_000;
    let is_urgent = urgent == Some(early);
    (next == Some(if is_urgent { early } else { moment.ticks() }), is_urgent)
}

/// Begins to wait for `moment`, looks, and gives it up.
async fn is_next_of_sleep(moment: Instant) -> (bool, bool) {
    let mut sleep = pin!(time::sleep_until(moment));
    poll_fn(|context| {
        let waits = sleep.as_mut().poll(context).is_pending();
        Poll::Ready(if waits { is_next(moment) } else { (false, false) })
    })
    .await
}

/// A message for an actor of this executor.
fn is_next_of_send(executor: &Executor, moment: Instant) -> Result<(bool, bool), Failure> {
    let message = executor.handle().spawn(Adder(Arc::default()))?.send_at(moment, 1)?;
    let seen = is_next(moment);
    ensure_eq!(message.cancel(), Some(1), "the message that was taken back");
    Ok(seen)
}

/// A message for this process.
fn is_next_of_mail(moment: Instant) -> Result<(bool, bool), Failure> {
    let mut mailbox = ProcessMailbox::new(1)?;
    let address = mailbox.address();
    // Now it is known who receives.
    ensure_eq!(mailbox.try_receive(), None::<u32>, "what nobody has sent");
    let message = address.send_at(moment, 1)?;
    let seen = is_next(moment);
    ensure_eq!(message.cancel(), Some(1), "the message that was taken back");
    Ok(seen)
}

kernel_test! {
    /// Each core says to the tick when its next timer is due, and when the next that wakes what is urgent; until it is taken back.
    async fn deadlines_are_published() -> Outcome {
        // Other timers are due before these, and none should be.
        sched::out_of_work().await;
        for priority in Priority::ALL {
            let tries = Spawn::new().priority(priority).pinned(CoreId::BOOT).start(async move {
                let executor = Executor::start(&Config::default().priority(priority))?;
                let expected = (true, priority.is_urgent());
                let moment = Instant::now() + FAR;
                ensure_eq!(is_next_of_sleep(moment).await, expected, "what a sleep shows");
                ensure!(!is_next(moment).0, "a sleep that was given up still shows");
                ensure_eq!(is_next_of_send(&executor, moment)?, expected, "what a message to an actor shows");
                ensure!(!is_next(moment).0, "a message that was taken back still shows");
                ensure_eq!(is_next_of_mail(moment)?, expected, "what a message to a process shows");
                executor.stop().await;
                Ok::<_, Failure>(())
            })?;
            tries.await??;
        }
        Ok(())
    }
}

kernel_test! {
    /// Timers of one core fire in the order of their moments, those of one moment in the order in which they were set.
    async fn timers_fire_in_order() -> Outcome {
        const COUNT: u64 = 2000;
        let mut lead = Duration::from_millis(20);
        loop {
            let set = Spawn::new().pinned(CoreId::BOOT).start(async move {
                let mailbox = ProcessMailbox::new(COUNT as usize)?;
                let address = mailbox.address();
                let first = Instant::now() + lead;
                for number in 0..COUNT {
                    // Mixed, and several at each moment.
                    let place = number * 7919 % (COUNT / 4);
                    address.send_at(first + Duration::from_nanos(place * 1000), (place, number))?;
                }
                Ok::<_, Failure>((mailbox, Instant::now() < first))
            })?;
            let (mut mailbox, all_were_set) = set.await??;
            let mut before = None;
            for _ in 0..COUNT {
                let message = mailbox.receive().await;
                ensure!(message.is_some(), "the mailbox is closed");
                ensure!(message > before || !all_were_set, "{message:?} came after {before:?}");
                before = message;
            }
            if all_were_set {
                return Ok(());
            }
            // Some were set after others had fired, because the host was busy elsewhere.
            lead *= 4;
        }
    }
}

/// Adds up the numbers it is sent.
struct Adder(Arc<(AtomicU64, AtomicU64)>);

impl Actor for Adder {}

impl Receive<u32> for Adder {
    type Reply = ();

    fn receive(&mut self, number: u32, _: &mut Context<Self>) {
        self.0.0.fetch_add(1, Ordering::Relaxed);
        self.0.1.fetch_add(u64::from(number), Ordering::Relaxed);
    }
}

/// Timers that are set to find out how long that takes.
const TRIED: u32 = 10_000;

kernel_test! {
    /// 200,000 messages wait in one core's timer queue, or as many as the boot argument `timers` says: a million take minutes. However
    /// many are due at once, a pass handles a bounded number, and processes run between two passes.
    async fn many_pending_timers_make_no_pass_long() -> Outcome {
        let count = amount("timers", 200_000);
        let executor = Executor::start(&Config::default())?;
        let needed = estimate(&executor, count)? * 3 / 2 + Duration::from_millis(300);
        // If the host was busy elsewhere, the second time there is far more room.
        if let Some(needed) = all_fire(&executor, count, needed).await? {
            all_fire(&executor, count, needed * 3 / 2 + Duration::from_secs(1)).await?;
        }
        executor.stop().await;
        Ok(())
    }
}

/// How long it takes to set so many, more or less.
fn estimate(executor: &Executor, count: u64) -> Result<Duration, Failure> {
    let adder = executor.handle().spawn(Adder(Arc::default()))?;
    let begin = time::Instant::now();
    for number in 0..TRIED {
        let message = adder.send_after(Duration::from_secs(3600), number)?;
        ensure_eq!(message.cancel(), Some(number), "the message that was taken back");
    }
    Ok((begin.elapsed() * (count as u32).div_ceil(TRIED)).min(Duration::from_secs(10)))
}

/// Sets them so that the first fires after `needed`, and lets them fire. If not all of them were set by then, gives back how
/// long that took.
async fn all_fire(executor: &Executor, count: u64, needed: Duration) -> Result<Option<Duration>, Failure> {
    let sums = Arc::new((AtomicU64::new(0), AtomicU64::new(0)));
    let adder = executor.handle().spawn(Adder(sums.clone()))?;
    let core = sched::current_core().ok_or("on no core")?;
    // All are due in a moment after the last was set: the worst that a core can be given.
    let begin = time::Instant::now();
    let first = begin + needed;
    let fired = time::fired();
    let set = Spawn::new().pinned(core).start(async move {
        for number in 0..count {
            let delay = (first - time::Instant::now()) + Duration::from_nanos(number * 100);
            if adder.send_after(delay, number as u32).is_err() {
                return number;
            }
            if number % 1024 == 0 {
                sched::yield_now().await;
            }
        }
        count
    });
    let set = set.map_err(|error| alloc::format!("{error:?}"))?;
    let set = set.await.map_err(|error| alloc::format!("{error:?}"))?;
    ensure_eq!(set, count, "timers for which there was memory");
    let (pending, took) = (time::pending(), begin.elapsed());
    magpie::log::text!("timers were set in {took:?}, the first of them to fire after {needed:?}");
    ensure!(took >= needed || pending >= count, "{pending} timers are pending");
    // A neighbour on the same core that always has something to do counts its turns meanwhile.
    let (begun, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let neighbour = Spawn::new().pinned(core).start({
        let (begun, over) = (begun.clone(), over.clone());
        async move {
            let (mut turns, mut before) = (0_u64, None);
            begun.store(true, Ordering::Relaxed);
            while !over.load(Ordering::Relaxed) {
                if time::Instant::now() >= first {
                    turns += 1;
                    before.get_or_insert_with(|| (stats::core(core).context_switches(), time::fired()));
                }
                sched::yield_now().await;
            }
            let (turns_before, fired_before) = before.unwrap_or_default();
            (turns, stats::core(core).context_switches() - turns_before, fired_before)
        }
    });
    let neighbour = neighbour.map_err(|error| alloc::format!("{error:?}"))?;
    while !begun.load(Ordering::Relaxed) {
        sched::yield_now().await;
    }
    // If the first may have fired by now, not all are due at once, and a neighbour's turns say nothing.
    let took = begin.elapsed();
    let all_at_once = took < needed;
    while time::fired() - fired < count {
        time::sleep(Duration::from_millis(20)).await;
    }
    over.store(true, Ordering::Relaxed);
    let (turns, turns_of_all, fired_before) = neighbour.await.map_err(|error| alloc::format!("{error:?}"))?;
    sched::out_of_work().await;
    let per_pass = sched::setting(Setting::TimersPerPass);
    ensure!(time::longest_pass() <= per_pass, "{} timers in one pass", time::longest_pass());
    // The timers need at least so many passes, and each is followed by a turn: of the neighbour, of the actor's worker or of who
    // waits here. They take turns, so the neighbour has its third. Turns and timers are counted from its first turn on.
    let passes = (count - fired_before.saturating_sub(fired)) / per_pass;
    magpie::log::text!("{turns} turns of a neighbour, {turns_of_all} of all, in {passes} passes or more");
    ensure!(!all_at_once || turns_of_all >= passes, "{turns_of_all} turns while {count} timers fired");
    ensure!(!all_at_once || turns >= passes / 3, "{turns} turns of a neighbour while {count} timers fired");
    ensure_eq!(sums.0.load(Ordering::Relaxed), count, "messages handled");
    ensure_eq!(sums.1.load(Ordering::Relaxed), count * (count - 1) / 2, "their sum");
    Ok((!all_at_once).then_some(took))
}
