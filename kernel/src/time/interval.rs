//! Moments that come again and again, for a process that waits for each.
//!
//! Each is due one period after the one before, however late that was noticed. One timer is armed for all, so a tick takes no
//! memory. What comes to an actor or a mailbox again and again is in `message/send_interval.rs`.

use core::fmt;
use core::future::poll_fn;
use core::task::{Context, Poll, ready};
use core::time::Duration;

use super::alarm::Alarm;
use super::instant::Instant;
use super::schedule::Schedule;

/// What becomes of ticks for which nobody has waited in time.
///
/// ```
/// # use magpie::{sched, time};
/// use core::time::Duration;
/// use magpie::time::Missed;
/// # sched::run_on_threads(2, 1, async {
/// let mut steady = time::interval(Duration::from_millis(1)).when_missed(Missed::Skip);
/// let mut complete = time::interval(Duration::from_millis(1)).when_missed(Missed::Burst);
/// time::sleep(Duration::from_millis(5)).await;
/// let late = (steady.tick().await, complete.tick().await);
/// // The one goes on with what lies ahead, the other with what came next.
/// assert!(steady.tick().await - late.0 >= Duration::from_millis(4) && steady.missed() >= 3);
/// assert_eq!(complete.tick().await - late.1, Duration::from_millis(1));
/// assert_eq!(complete.missed(), 0);
/// # }).unwrap();
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Missed {
    /// They are left out, and counted: the next tick is the first that lies ahead, at a multiple of the period.
    #[default]
    Skip,
    /// They come one right after the other, until the interval has caught up.
    Burst,
}

/// A tick every `period`, the first in one period.
///
/// ```
/// # use magpie::{sched, time};
/// use core::time::Duration;
/// # sched::run_on_threads(2, 1, async {
/// let mut interval = time::interval(Duration::from_millis(2));
/// let first = interval.tick().await;
/// let second = interval.tick().await;
/// // When they were due, not when they were noticed; ticks that were missed are left out.
/// assert!(second - first >= Duration::from_millis(2));
/// assert_eq!((second - first).as_millis() % 2, 0);
/// # }).unwrap();
/// ```
///
/// # Panics
/// If the period is zero.
#[track_caller]
pub fn interval(period: Duration) -> Interval {
    interval_at(Instant::now() + period, period)
}

/// A tick at `first`, and then every `period`.
///
/// ```
/// # use magpie::{sched, time};
/// use core::time::Duration;
/// # sched::run_on_threads(2, 1, async {
/// let now = time::Instant::now();
/// let mut interval = time::interval_at(now, Duration::from_millis(2));
/// assert_eq!(interval.tick().await, now);
/// # }).unwrap();
/// ```
///
/// # Panics
/// If the period is zero.
#[track_caller]
pub fn interval_at(first: Instant, period: Duration) -> Interval {
    let schedule = Schedule::new(first, period);
    Interval { schedule, when_missed: Missed::default(), missed: 0, alarm: Alarm::new(false) }
}

/// Ticks at equal distances: see [`interval`].
///
/// ```
/// # use magpie::{sched, time};
/// use core::time::Duration;
/// use magpie::time::{Interval, Missed};
/// # sched::run_on_threads(2, 1, async {
/// let mut complete = time::interval(Duration::from_micros(100)).when_missed(Missed::Burst);
/// complete.tick().await;
/// assert_eq!(complete.missed(), 0, "all come, if late");
///
/// async fn beat(mut heart: Interval) {
///     loop {
///         heart.tick().await;
///     }
/// }
/// let heart = sched::spawn(beat(time::interval(Duration::from_millis(1)).in_background()));
/// // It goes on for ever, and yet is no work.
/// sched::out_of_work().await;
/// # drop(heart);
/// # }).unwrap();
/// ```
pub struct Interval {
    schedule: Schedule,
    when_missed: Missed,
    missed: u64,
    alarm: Alarm,
}

impl Interval {
    /// With this rule for ticks that are missed; [`Missed::Skip`] unless it is said.
    #[must_use]
    pub fn when_missed(self, rule: Missed) -> Self {
        Self { when_missed: rule, ..self }
    }

    /// With a timer that does not count as work. To be said before the first tick is waited for.
    #[must_use]
    pub fn in_background(self) -> Self {
        Self { alarm: Alarm::new(true), ..self }
    }

    /// Waits for the next tick, at least, and says when it was due. Given up and awaited anew, it is the same tick.
    pub async fn tick(&mut self) -> Instant {
        poll_fn(|context| self.poll_tick(context)).await
    }

    fn poll_tick(&mut self, context: &mut Context<'_>) -> Poll<Instant> {
        let due = self.schedule.due();
        ready!(self.alarm.poll(due, context));
        match self.when_missed {
            Missed::Skip => {
                self.missed = self.missed.saturating_add(self.schedule.advance_beyond(Instant::now()))
            }
            Missed::Burst => self.schedule.advance(),
        }
        Poll::Ready(due)
    }

    /// How many ticks were left out so far, because nobody waited for them in time.
    pub fn missed(&self) -> u64 {
        self.missed
    }
}

impl fmt::Debug for Interval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Interval").field("next", &self.schedule.due()).field("missed", &self.missed).finish()
    }
}
