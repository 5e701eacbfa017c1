//! Futures that wait for a moment.
//!
//! What they wait with is in `time/alarm.rs`; moments that come again and again are in `time/interval.rs`.

use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;

use super::alarm::Alarm;
use super::instant::Instant;

/// Waits for `duration`, at least.
///
/// ```
/// # use magpie::{sched, time};
/// use core::time::Duration;
/// # sched::run_on_threads(2, 1, async {
/// let begin = time::Instant::now();
/// time::sleep(Duration::from_millis(2)).await;
/// assert!(time::Instant::now() - begin >= Duration::from_millis(2));
/// # }).unwrap();
/// ```
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now() + duration)
}

/// Waits until `deadline`, at least. Awaited when that has passed, it is over at once.
///
/// ```
/// # use magpie::{sched, time};
/// use core::time::Duration;
/// # sched::run_on_threads(2, 1, async {
/// // Every two milliseconds, however long the work takes.
/// let mut next = time::Instant::now();
/// for _ in 0..3 {
///     next = next + Duration::from_millis(2);
///     time::sleep_until(next).await;
///     assert!(time::Instant::now() >= next);
/// }
/// # }).unwrap();
/// ```
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(deadline, false)
}

/// Waits for `future`, but no longer than `limit`.
///
/// The future's output, or [`Elapsed`]:
///
/// ```
/// # use magpie::{sched, time};
/// use core::time::Duration;
/// # sched::run_on_threads(2, 1, async {
/// let never = core::future::pending::<()>();
/// assert_eq!(time::timeout(Duration::from_millis(2), never).await, Err(time::Elapsed));
/// # }).unwrap();
/// ```
pub fn timeout<F: Future>(limit: Duration, future: F) -> Timeout<F> {
    Timeout { future, limit: Sleep::new(Instant::now() + limit, false) }
}

/// As [`timeout`], with a timer that does not count as work: a watchdog does not keep the system from having
/// run out of work.
///
/// ```
/// # use magpie::{sched, time};
/// use core::time::Duration;
/// # sched::run_on_threads(2, 1, async {
/// let watchdog = sched::spawn(time::background_timeout(Duration::from_secs(3600), core::future::pending::<()>()));
/// // Not in an hour: a watchdog alone is no work.
/// sched::out_of_work().await;
/// # drop(watchdog);
/// # }).unwrap();
/// ```
pub fn background_timeout<F: Future>(limit: Duration, future: F) -> Timeout<F> {
    Timeout { future, limit: Sleep::new(Instant::now() + limit, true) }
}

/// The future of [`sleep`] and [`sleep_until`].
pub struct Sleep {
    deadline: Instant,
    alarm: Alarm,
}

impl Sleep {
    fn new(deadline: Instant, background: bool) -> Self {
        Self { deadline, alarm: Alarm::new(background) }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.deadline;
        self.alarm.poll(deadline, context)
    }
}

/// The limit of a [`timeout`], or [`background_timeout`], was reached first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time limit was reached")
    }
}

impl core::error::Error for Elapsed {}

/// The future of [`timeout`] and [`background_timeout`].
pub struct Timeout<F> {
    future: F,
    limit: Sleep,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the future stays where it is, and is not moved out; the limit need not be pinned.
        let (future, limit) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &mut this.limit)
        };
        if let Poll::Ready(output) = future.poll(context) {
            return Poll::Ready(Ok(output));
        }
        Pin::new(limit).poll(context).map(|()| Err(Elapsed))
    }
}
