//! Futures that wait for a moment.
//!
//! A timer in a queue has an allocation of its own, which the future owns: the queue links it, and a future may lie in
//! memory that a crash gives back without dropping anything (see `sched::spawn::task`). When a process crashes, the timers that
//! would wake it are taken out of their queues (`timers/owned.rs`); their memory stays, because the future may belong
//! to another process by now. That process arms a timer of its own.
//!
//! **Without memory** for its timer a future asks to be polled again at once, until there is some or its moment has come.
//! So it is never early and is not lost, but its process uses up its turns and counts as work meanwhile.

use alloc::boxed::Box;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll, Waker};
use core::time::Duration;

use super::instant::Instant;
use super::timers::owned::OwnedTimers;
use super::timers::per_core::{self, Checked};
use super::timers::timer::Timer;
use crate::sync::keep_waker;
use crate::{mem, sched};

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
    background: bool,
    /// From the first poll before the deadline on.
    armed: Option<Armed>,
}

impl Sleep {
    fn new(deadline: Instant, background: bool) -> Self {
        Self { deadline, background, armed: None }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if let Some(armed) = &self.armed {
            match armed.check(context.waker()) {
                Checked::Fired => return Poll::Ready(()),
                Checked::Waits => return Poll::Pending,
                Checked::TakenOut => self.armed = None,
            }
        }
        if Instant::now() >= self.deadline {
            return Poll::Ready(());
        }
        self.armed = Armed::new(self.deadline, self.background, context.waker());
        if self.armed.is_none() {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

/// The list of the timers that would wake the process that `waker` wakes, if it wakes one.
fn owner_of(waker: &Waker) -> Option<NonNull<OwnedTimers>> {
    sched::timers_of(waker).map(NonNull::from)
}

/// A timer that was put into a queue, in memory of its own. Dropped, it is taken out and freed.
struct Armed {
    timer: NonNull<Timer>,
    /// The core in whose queue it is.
    core: usize,
}

// SAFETY: the timer is touched under its queue's lock only, until it was taken out.
unsafe impl Send for Armed {}
// SAFETY: as above; and the lock makes one caller at a time of several.
unsafe impl Sync for Armed {}

impl Armed {
    /// Arms a timer that wakes `waker`; `None` without memory.
    fn new(deadline: Instant, background: bool, waker: &Waker) -> Option<Self> {
        let mut timer = mem::try_box(Timer::new(background)).ok()?;
        timer.waker = Some(keep_waker(waker)?);
        timer.urgent = sched::priority_of(waker).is_urgent();
        timer.owner = owner_of(waker);
        let timer = NonNull::from(Box::leak(timer));
        // SAFETY: a box's content does not move, and this one is freed in `drop` only, after it was taken out. A crash
        // frees nothing.
        let core = unsafe { per_core::arm(timer, deadline.ticks()) };
        Some(Self { timer, core })
    }

    /// Whether it has fired; if not, `waker` is woken when it does.
    fn check(&self, waker: &Waker) -> Checked {
        // SAFETY: armed on that core; the list is in the process that the waker keeps.
        unsafe { per_core::check(self.timer, self.core, waker, owner_of(waker)) }
    }
}

impl Drop for Armed {
    fn drop(&mut self) {
        // SAFETY: armed on that core, and in no queue afterwards, so the memory is this value's alone; it came from a
        // box.
        unsafe {
            per_core::cancel(self.timer, self.core);
            drop(Box::from_raw(self.timer.as_ptr()));
        }
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
