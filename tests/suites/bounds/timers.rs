//! How late a timer wakes who waits for it, on a machine that does nothing else.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Addr, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::channel::{ProcessAddr, ProcessMailbox};
use magpie::machine;
use magpie::sched::{self, Priority, Setting, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{Failure, Outcome, ensure, ensure_eq, kernel_test};

use crate::needs_counted_time;

const SLEEPS: u64 = 200;
const TICKS: u32 = 200;

/// From the moment to the first instruction of who waited: the interrupt, the way through the core's loop, and the turn's
/// beginning.
const MEAN: Duration = Duration::from_micros(2);
/// What other cores execute meanwhile, on their way to sleep, goes on the same clock: 3.4 µs on one core, 5.5 on eight.
const LONGEST: Duration = Duration::from_micros(10);

/// How late each was.
fn judge(mut late: Vec<Duration>, what: &str) -> Outcome {
    late.sort();
    let longest = late.last().copied().unwrap_or_default();
    let mean = late.iter().sum::<Duration>() / late.len().max(1) as u32;
    magpie::log::text!("{what} is {} ns late, at most {} ns", mean.as_nanos(), longest.as_nanos());
    ensure!(mean < MEAN, "{what} is {} ns late on average", mean.as_nanos());
    ensure!(longest < LONGEST, "{what} is {} ns late at most", longest.as_nanos());
    Ok(())
}

/// How late a process of this priority awakes from sleeps of odd lengths, of up to a tenth of a millisecond more than `least`.
async fn lateness(priority: Priority, least: Duration) -> Result<Vec<Duration>, Failure> {
    let sleeper = Spawn::new().priority(priority).pinned(CoreId::BOOT).start(async move {
        let mut late = Vec::new();
        for number in 0..SLEEPS {
            let until = Instant::now() + least + Duration::from_nanos(number * 7919 % 100_003);
            time::sleep_until(until).await;
            let now = Instant::now();
            ensure!(now >= until, "sleep {number} was over {} ns early", (until - now).as_nanos());
            late.push(now - until);
        }
        Ok::<_, Failure>(late)
    })?;
    sleeper.await?
}

kernel_test! {
    /// A sleep ends within two microseconds of its moment, and never before.
    async fn a_sleep_is_two_microseconds_late() -> Outcome {
        needs_counted_time()?;
        // Once to have everything in place.
        lateness(Priority::Normal, Duration::from_micros(1)).await?;
        for least in [Duration::from_micros(1), Duration::from_millis(1)] {
            judge(lateness(Priority::Normal, least).await?, "a sleep")?;
            judge(lateness(Priority::High, least).await?, "an urgent sleep")?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Each tick is due at its own multiple of an odd period, and comes within two microseconds.
    async fn an_interval_does_not_drift() -> Outcome {
        const PERIOD: Duration = Duration::from_nanos(50_017);
        needs_counted_time()?;
        let ticking = Spawn::new().pinned(CoreId::BOOT).start(async {
            let mut late = Vec::new();
            let first = Instant::now() + PERIOD;
            let mut interval = time::interval_at(first, PERIOD);
            for number in 0..TICKS {
                let due = interval.tick().await;
                let now = Instant::now();
                ensure!(due == first + PERIOD * number, "tick {number} was due at another moment");
                ensure!(now >= due, "tick {number} came early");
                late.push(now - due);
            }
            ensure_eq!(interval.missed(), 0, "ticks left out");
            Ok::<_, Failure>(late)
        })?;
        judge(ticking.await??, "a tick")
    }
}

/// From the moment on, with the lead: the sleeper's own instructions, and one tick of the clock; and at most an interrupt right then.
const ON_TIME: [Duration; 2] = [Duration::from_nanos(100), Duration::from_nanos(500)];
/// Of a message, with the worker's turn up to the behaviour, where debug assertions are on.
const MESSAGE_ON_TIME: [Duration; 2] = [Duration::from_nanos(500), Duration::from_nanos(1000)];

/// The mean, and the most.
fn mean_and_most(late: &[Duration]) -> [Duration; 2] {
    let longest = late.iter().max().copied().unwrap_or_default();
    [late.iter().sum::<Duration>() / late.len().max(1) as u32, longest]
}

fn judge_lead(with: &[Duration], without: &[Duration], bounds: [Duration; 2], what: &str) -> Outcome {
    let ([mean, most], [mean_without, _]) = (mean_and_most(with), mean_and_most(without));
    magpie::log::text!(
        "{what} comes after {mean:?}, at most {most:?}; without the lead after {mean_without:?}"
    );
    ensure!(mean <= bounds[0] && most <= bounds[1], "{what} comes after {mean:?}, at most {most:?}");
    ensure!(
        mean_without > mean * 2,
        "without the lead {what} comes after {mean_without:?}, with it after {mean:?}"
    );
    Ok(())
}

/// Takes note of how late the messages are that it schedules to itself.
struct Sampler {
    me: Option<Addr<Self>>,
    late: Vec<Duration>,
    done: ProcessAddr<Vec<Duration>>,
}

struct Due(Instant);

impl Actor for Sampler {}

impl Receive<Due> for Sampler {
    type Reply = ();

    fn receive(&mut self, Due(due): Due, context: &mut Context<Self>) {
        let now = Instant::now();
        if let Some(me) = self.me {
            self.late.push(now - due);
            if self.late.len() as u64 == SLEEPS {
                // Its reader waits for ever if it does not come.
                let _ = self.done.send(core::mem::take(&mut self.late));
                return context.end();
            }
            let due =
                Instant::now() + Duration::from_nanos(100_000 + self.late.len() as u64 * 7919 % 100_003);
            let _ = me.send_at(due, Due(due));
        }
    }
}

impl Receive<Addr<Self>> for Sampler {
    type Reply = ();

    fn receive(&mut self, me: Addr<Self>, _: &mut Context<Self>) {
        self.me = Some(me);
        let _ = me.send(Due(Instant::now()));
    }
}

/// How late messages come to an urgent actor on the only worker of its executor.
async fn lateness_of_messages() -> Result<Vec<Duration>, Failure> {
    let executor = Executor::start(&Config::default().workers(1).priority(Priority::High))?;
    let mut mailbox = ProcessMailbox::new(1)?;
    let sampler = Sampler { me: None, late: Vec::new(), done: mailbox.address() };
    let sampler = executor.handle().spawn(sampler)?;
    sampler.send(sampler)?;
    let mut late = mailbox.receive().await.ok_or("no sample came")?;
    executor.stop().await;
    // The first was sent at once.
    late.remove(0);
    Ok(late)
}

kernel_test! {
    /// An urgent process goes on at its very moment, and a message for an urgent actor is soon handled, because the core has made way before; without the lead
    /// neither is so.
    async fn what_is_urgent_is_on_time() -> Outcome {
        needs_counted_time()?;
        if machine::cores() > 1 {
            // The turns of the other virtual cores go on the same clock.
            return Ok(());
        }
        let lead = sched::setting(Setting::LeadMicroseconds);
        let least = Duration::from_micros(100);
        let (sleeps, messages) = (lateness(Priority::High, least).await?, lateness_of_messages().await?);
        sched::set_setting(Setting::LeadMicroseconds, 0)?;
        let without = (lateness(Priority::High, least).await, lateness_of_messages().await);
        sched::set_setting(Setting::LeadMicroseconds, lead)?;
        judge_lead(&sleeps, &without.0?, ON_TIME, "an urgent sleep")?;
        judge_lead(&messages, &without.1?, MESSAGE_ON_TIME, "a message")
    }
}

kernel_test! {
    /// Who sleeps urgently for less than the lead, again and again, leaves its core to others meanwhile.
    async fn a_lead_does_not_keep_the_core() -> Outcome {
        needs_counted_time()?;
        let lead = sched::setting(Setting::LeadMicroseconds);
        sched::set_setting(Setting::LeadMicroseconds, 20)?;
        let over = Arc::new(AtomicBool::new(false));
        let turns = Arc::new(AtomicU64::new(0));
        let other = {
            let (over, turns) = (over.clone(), turns.clone());
            Spawn::new().pinned(CoreId::BOOT).start(async move {
                while !over.load(Ordering::Relaxed) {
                    turns.fetch_add(1, Ordering::Relaxed);
                    sched::yield_now().await;
                }
            })?
        };
        let sleeper = Spawn::new().priority(Priority::High).pinned(CoreId::BOOT).start(async move {
            let mut with_others = 0;
            for _ in 0..SLEEPS {
                let before = turns.load(Ordering::Relaxed);
                time::sleep(Duration::from_micros(15)).await;
                with_others += u64::from(turns.load(Ordering::Relaxed) != before);
            }
            with_others
        })?;
        let with_others = sleeper.await;
        over.store(true, Ordering::Relaxed);
        sched::set_setting(Setting::LeadMicroseconds, lead)?;
        other.await?;
        ensure_eq!(with_others?, SLEEPS, "sleeps in which others had turns");
        Ok(())
    }
}
