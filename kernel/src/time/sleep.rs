//! Futures that wait for a moment.

use core::cell::UnsafeCell;
use core::fmt;
use core::future::Future;
use core::marker::PhantomPinned;
use core::pin::Pin;
use core::ptr::NonNull;
use core::task::{Context, Poll};
use core::time::Duration;

use super::instant::Instant;
use super::timers;
use super::wheel::Timer;

/// Waits for `duration`, at least.
pub fn sleep(duration: Duration) -> Sleep {
    sleep_until(Instant::now() + duration)
}

/// Waits until `deadline`, at least.
pub fn sleep_until(deadline: Instant) -> Sleep {
    Sleep::new(deadline, false)
}

/// Waits for `future`, but no longer than `limit`.
pub fn timeout<F: Future>(limit: Duration, future: F) -> Timeout<F> {
    Timeout { future, limit: Sleep::new(Instant::now() + limit, false) }
}

/// As [`timeout`], with a timer that does not count as work: a watchdog does not keep the system from having
/// run out of work.
pub fn background_timeout<F: Future>(limit: Duration, future: F) -> Timeout<F> {
    Timeout { future, limit: Sleep::new(Instant::now() + limit, true) }
}

/// The future of [`sleep`].
pub struct Sleep {
    timer: UnsafeCell<Timer>,
    deadline: Instant,
    /// The core in whose wheel the timer is.
    armed_on: Option<usize>,
    _pinned: PhantomPinned,
}

// SAFETY: the timer is touched under its wheel's lock only, once it is armed; before that by the owner.
unsafe impl Send for Sleep {}

impl Sleep {
    fn new(deadline: Instant, background: bool) -> Self {
        Self {
            timer: UnsafeCell::new(Timer::new(background)),
            deadline,
            armed_on: None,
            _pinned: PhantomPinned,
        }
    }

    fn timer(&self) -> NonNull<Timer> {
        // SAFETY: a cell's pointer is not null.
        unsafe { NonNull::new_unchecked(self.timer.get()) }
    }
}

impl Future for Sleep {
    type Output = ();

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        // SAFETY: nothing is moved out.
        let this = unsafe { self.get_unchecked_mut() };
        let timer = this.timer();
        if let Some(core) = this.armed_on {
            // SAFETY: armed there, below.
            return if unsafe { timers::check(timer, core, context.waker()) } {
                Poll::Ready(())
            } else {
                Poll::Pending
            };
        }
        if Instant::now() >= this.deadline {
            return Poll::Ready(());
        }
        // SAFETY: not armed yet, so the timer is ours alone.
        unsafe { (*this.timer.get()).waker = Some(context.waker().clone()) };
        // SAFETY: the future is pinned, and cancels when it is dropped.
        this.armed_on = Some(unsafe { timers::arm(timer, this.deadline.ticks()) });
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(core) = self.armed_on {
            // SAFETY: armed on that core, in `poll`.
            unsafe { timers::cancel(self.timer(), core) };
        }
    }
}

/// The limit of a [`timeout`] was reached first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Elapsed;

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time limit was reached")
    }
}

/// The future of [`timeout`].
pub struct Timeout<F> {
    future: F,
    limit: Sleep,
}

impl<F: Future> Future for Timeout<F> {
    type Output = Result<F::Output, Elapsed>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: both fields stay where they are; neither is moved out.
        let (future, limit) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), Pin::new_unchecked(&mut this.limit))
        };
        if let Poll::Ready(output) = future.poll(context) {
            return Poll::Ready(Ok(output));
        }
        limit.poll(context).map(|()| Err(Elapsed))
    }
}
