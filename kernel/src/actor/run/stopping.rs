//! Waiting for the end of an executor, and what is said of it then. How it ends is in `shutdown.rs`.

use core::fmt;
use core::future::Future;
use core::mem::transmute;
use core::pin::Pin;
use core::task::{Context, Poll};

use super::executor_state::ExecutorState;
use crate::mem::Counted;
use crate::sync::Seat;

/// What became of an executor that was stopped.
///
/// ```
/// use magpie::actor::Stopped;
/// fn say(stopped: Stopped) -> String {
///     format!("{} messages dropped, {} behaviours killed", stopped.undelivered(), stopped.killed())
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Stopped {
    undelivered: u64,
    killed: u64,
}

impl Stopped {
    /// How many messages were not delivered, and dropped.
    pub const fn undelivered(&self) -> u64 {
        self.undelivered
    }

    /// How many behaviours and destructors did not end in time, and were killed.
    pub const fn killed(&self) -> u64 {
        self.killed
    }
}

/// The stop of an executor, which has begun: who awaits it waits for its end. Any number may, each with a clone. Dropped, it changes nothing.
///
/// ```
/// # use magpie::sched;
/// use core::time::Duration;
/// use magpie::actor::{Config, Executor};
///
/// # sched::run_on_threads(2, 1, async {
/// let executor = Executor::start(&Config::default())?;
/// let stopping = executor.stop_within(Duration::from_secs(1));
/// let other = sched::spawn(stopping.clone())?;
/// assert_eq!(other.await, Ok(stopping.clone().await));
/// assert!(stopping.is_over());
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[must_use = "it goes on by itself; who needs its end awaits it"]
pub struct Stopping {
    /// First, so that it is dropped first: it refers to the executor.
    seat: Seat<'static>,
    executor: Counted<ExecutorState>,
}

impl Stopping {
    pub(super) fn new(executor: Counted<ExecutorState>) -> Self {
        // SAFETY: the seat lies beside a reference to what it refers to, which stays where it is, and is dropped before that.
        let seat = unsafe { transmute::<Seat<'_>, Seat<'static>>(executor.clearing.seat()) };
        Self { seat, executor }
    }

    /// Whether it has come to its end.
    pub fn is_over(&self) -> bool {
        self.executor.clearing.is_over()
    }

    fn stopped(&self) -> Stopped {
        Stopped {
            undelivered: self.executor.clearing.dropped(),
            killed: self.executor.killed() + self.executor.clearing.killed(),
        }
    }
}

impl Clone for Stopping {
    fn clone(&self) -> Self {
        Self::new(self.executor.clone())
    }
}

impl fmt::Debug for Stopping {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stopping({})", if self.is_over() { "over" } else { "not over" })
    }
}

impl Future for Stopping {
    type Output = Stopped;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Stopped> {
        let this = &mut *self;
        let clearing = &this.executor.clearing;
        this.seat.poll(context.waker(), |_told| clearing.is_over()).map(|()| this.stopped())
    }
}
