//! How a child is started, again and again.
//!
//! **Nothing of the application's runs in the supervisor's process**: neither what makes the child nor its destructor. Both run in
//! the child's process, or in one of their own, where a crash ends nobody else.

use alloc::boxed::Box;
use core::future::Future;
use core::mem::{ManuallyDrop, needs_drop};

use super::shutdown::Shutdown;
use crate::mem::{self, OutOfMemory};
use crate::message::Shared;
use crate::sched::{self, ProcessRef, Spawn, SpawnError};

/// What a child's future returns: whether that is a failure.
///
/// ```
/// use magpie::supervise::Ending;
/// assert!(Err::<(), _>("no paper").is_failure() && !Ok::<_, ()>(7).is_failure() && !().is_failure());
/// ```
///
/// ```
/// use magpie::supervise::{Child, Shutdown};
///
/// async fn read(_: Shutdown) -> Result<u32, &'static str> {
///     Err("there is nothing to read")
/// }
/// // Its error is a failure, as a crash is.
/// let reader = Child::process("reader", read).transient();
/// # let _ = reader;
/// ```
pub trait Ending: Send + 'static {
    /// Whether the child has failed.
    fn is_failure(&self) -> bool;
}

impl Ending for () {
    fn is_failure(&self) -> bool {
        false
    }
}

impl Ending for core::convert::Infallible {
    fn is_failure(&self) -> bool {
        false
    }
}

impl<T: Send + 'static, E: Send + 'static> Ending for Result<T, E> {
    fn is_failure(&self) -> bool {
        self.is_err()
    }
}

/// How a child is started, whatever it is.
pub(super) trait Blueprint: Send + Sync {
    /// Starts a life of it.
    fn start(&self, shutdown: Shutdown, how: Spawn) -> Result<ProcessRef, SpawnError>;

    /// Whether code of the application's runs when it is dropped.
    fn needs_drop(&self) -> bool;
}

/// That of a function which makes a future.
pub(super) struct OfFunction<F>(Shared<F>);

impl<F, T> OfFunction<F>
where
    F: Fn(Shutdown) -> T + Send + Sync + 'static,
    T: Future<Output: Ending> + Send + 'static,
{
    pub(super) fn boxed(make: F) -> Result<Box<dyn Blueprint>, OutOfMemory> {
        let make = Shared::new(make).map_err(|error| error.without_message())?;
        Ok(mem::try_box(Self(make)).map_err(|(error, _)| error)?)
    }
}

impl<F, T> Blueprint for OfFunction<F>
where
    F: Fn(Shutdown) -> T + Send + Sync + 'static,
    T: Future<Output: Ending> + Send + 'static,
{
    fn start(&self, shutdown: Shutdown, how: Spawn) -> Result<ProcessRef, SpawnError> {
        let make = self.0.clone();
        let body = async move {
            // Here, and not by the supervisor: so there is no moment in which the one has ended and the other does not know.
            let has_failed = !shutdown.control().begin() || make(shutdown).await.is_failure();
            if has_failed && let Some(own) = sched::current_process() {
                own.note_failed();
            }
        };
        how.start_alone(body)
    }

    fn needs_drop(&self) -> bool {
        needs_drop::<F>()
    }
}

/// Drops what may run code of the application's, in a process of its own. Without memory for that it is not dropped at all.
pub(super) fn discard<T: Send + 'static>(what: T) {
    let what = ManuallyDrop::new(what);
    // Dropped with the future alone, if that is not started: nothing.
    let _ = sched::spawn(async move { drop(ManuallyDrop::into_inner(what)) });
}
