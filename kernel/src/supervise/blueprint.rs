//! How a child is started, again and again.
//!
//! **Nothing of the application's runs in the supervisor's process**: neither what makes the child nor its destructor. Both run in
//! the child's process, or in one of their own, where a crash ends nobody else. The memory for that is there from the beginning, so
//! it happens without any, too.

use alloc::boxed::Box;
use core::future::Future;
use core::marker::PhantomData;
use core::mem::needs_drop;
use core::pin::Pin;
use core::ptr::NonNull;

use super::shutdown::Shutdown;
use crate::mem::{self, OutOfMemory};
use crate::message::Shared;
use crate::sched::{self, Errand, ProcessRef, Spawn, SpawnError, Step};

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
trait Blueprint: Send + Sync {
    /// Starts a life of it.
    fn start(&self, shutdown: Shutdown, how: Spawn) -> Result<ProcessRef, SpawnError>;

    /// Drops it, in a process of its own if code of the application's runs meanwhile.
    fn discard(self: Box<Self>);
}

/// How a child is started, as it is kept.
pub(super) struct Plan {
    /// Until it is dropped.
    blueprint: Option<Box<dyn Blueprint>>,
    is_supervisors: bool,
}

impl Plan {
    /// To call that function for each life, whose process is seen under the name of the type `N`.
    pub(super) fn new<N, F, T>(make: F) -> Result<Self, OutOfMemory>
    where
        N: 'static,
        F: Fn(Shutdown) -> T + Send + Sync + 'static,
        T: Future<Output: Ending> + Send + 'static,
    {
        let make = Shared::new(make).map_err(|error| error.without_message())?;
        let errand = Errand::new(drop_function::<N, F>, free::<N, F>);
        let blueprint = mem::try_box(OfFunction { errand, make: Some(make), name: PhantomData::<fn() -> N> })
            .map_err(|(error, _)| error)?;
        Ok(Self { blueprint: Some(blueprint), is_supervisors: false })
    }

    /// It is handed to a supervisor: from here on what is the application's is dropped in a process of its own.
    pub(super) fn hand_over(&mut self) {
        self.is_supervisors = true;
    }

    /// Starts a life of the child.
    pub(super) fn start(&self, shutdown: Shutdown, how: Spawn) -> Result<ProcessRef, SpawnError> {
        self.blueprint.as_ref().ok_or(SpawnError::OutOfMemory)?.start(shutdown, how)
    }
}

impl Drop for Plan {
    fn drop(&mut self) {
        if self.is_supervisors
            && let Some(blueprint) = self.blueprint.take()
        {
            blueprint.discard();
        }
    }
}

/// That of a function which makes a future.
#[repr(C)]
struct OfFunction<N, F> {
    /// Drops the function.
    errand: Errand,
    /// Until then.
    make: Option<Shared<F>>,
    name: PhantomData<fn() -> N>,
}

// SAFETY: the errand is used by whoever discards this, who has it alone, and then by the scheduler, which does so from any core; the
// function may be used from any.
unsafe impl<N, F: Send + Sync> Send for OfFunction<N, F> {}
// SAFETY: as above; who shares it reaches the function only.
unsafe impl<N, F: Send + Sync> Sync for OfFunction<N, F> {}

impl<N, F, T> Blueprint for OfFunction<N, F>
where
    N: 'static,
    F: Fn(Shutdown) -> T + Send + Sync + 'static,
    T: Future<Output: Ending> + Send + 'static,
{
    fn start(&self, shutdown: Shutdown, how: Spawn) -> Result<ProcessRef, SpawnError> {
        // It is there until this is discarded.
        let make = self.make.clone().ok_or(SpawnError::OutOfMemory)?;
        // Each begins here, and not by the supervisor: so there is no moment in which the one has ended and the other does not know.
        if size_of::<T>() <= MOST_ON_STACK {
            how.start_alone::<N, _>(async move {
                note_end(!shutdown.control().begin() || make(shutdown).await.is_failure());
            })
        } else {
            how.start_alone::<N, _>(async move {
                note_end(!shutdown.control().begin() || run_in_a_box(make, shutdown).await);
            })
        }
    }

    fn discard(self: Box<Self>) {
        if needs_drop::<F>() {
            let errand = NonNull::from(Box::leak(self)).cast();
            // SAFETY: it stays in the box, which is this call's alone, until the errand frees it.
            unsafe { Errand::start(errand) };
        }
    }
}

/// A child's life is over.
fn note_end(has_failed: bool) {
    if has_failed && let Some(own) = sched::current_process() {
        own.note_failed();
    }
}

/// A larger future gets memory of its own, because whatever starts a process has the future on its stack, more than once. Here that is the
/// supervisor, which is not to end because of how large a child is.
const MOST_ON_STACK: usize = 1024;

/// Whether it has failed.
async fn run_in_a_box<F, T>(make: Shared<F>, shutdown: Shutdown) -> bool
where
    F: Fn(Shutdown) -> T,
    T: Future<Output: Ending>,
{
    match in_a_box(make, shutdown) {
        Ok(child) => child.await.is_failure(),
        Err(OutOfMemory) => true,
    }
}

/// In the child's process, on its stack: whoever has no room there ends alone.
#[inline(never)]
fn in_a_box<F, T>(make: Shared<F>, shutdown: Shutdown) -> Result<Pin<Box<T>>, OutOfMemory>
where
    F: Fn(Shutdown) -> T,
{
    // SAFETY: it is made where it will be.
    unsafe { mem::try_box_in_place(|place: *mut T| place.write(make(shutdown))) }.map(Box::into_pin)
}

/// What the errand of a blueprint does.
///
/// # Safety
/// `errand` is the first part of an `OfFunction<N, F>` that nobody else uses.
unsafe fn drop_function<N, F>(errand: NonNull<Errand>) -> Step {
    // SAFETY: by contract.
    let make = unsafe { (*errand.cast::<OfFunction<N, F>>().as_ptr()).make.take() };
    drop(make);
    Step::Done
}

/// # Safety
/// As [`drop_function`]; the box is given up.
unsafe fn free<N, F>(errand: NonNull<Errand>) {
    // SAFETY: by contract it comes from a box, and has no function any more: if its process was ended in the middle of that, neither.
    drop(unsafe { Box::from_raw(errand.cast::<OfFunction<N, F>>().as_ptr()) });
}
