//! What a core's loop does later on behalf of a caller. What is short and the kernel's own it does directly; what is
//! longer, or the application's, runs in a process of its own.

use core::ptr::NonNull;
use core::time::Duration;

use crate::mem::OutOfMemory;
use crate::sched::spawn::errand::Errand;
use crate::time::{DelayedCall, Held};

#[repr(C)]
struct Room<T> {
    errand: Errand,
    now: fn(T) -> Result<(), T>,
    late: fn(T),
}

/// A value that waits for its moment. Dropping this handle does not cancel it.
pub(crate) struct Later<T>(DelayedCall<Room<T>, T>);

impl<T: Send + 'static> Later<T> {
    /// Hands `value` to `now` after `delay`, at least. That is in the core's loop, so `now` runs nothing of the
    /// application's. What `now` returns goes to `late`, in a process. It counts as work until then.
    ///
    /// # Errors
    /// The value comes back when there is no memory.
    pub(crate) fn set(
        delay: Duration,
        value: T,
        now: fn(T) -> Result<(), T>,
        late: fn(T),
    ) -> Result<Self, (OutOfMemory, T)> {
        let room = Room { errand: Errand::new(run::<T>, free::<T>), now, late };
        DelayedCall::set(delay, room, value, fire).map(Self)
    }

    /// Whether the value still waits; it may be taken at any moment.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.is_pending()
    }

    /// Takes the value back, unless it was handed on already.
    pub(crate) fn cancel(self) -> Option<T> {
        self.0.cancel()
    }
}

fn fire<T: Send + 'static>(value: T, held: Held<Room<T>, T>) {
    if let Err(value) = (held.room().now)(value) {
        held.put_back(value);
        // SAFETY: a delayed call fires once. The reference that is given up here keeps it until `free`.
        unsafe { Errand::start(held.into_room().cast()) };
    }
}

/// # Safety
/// The errand of a `Room<T>`, to which [`fire`] has put the value back, once.
unsafe fn run<T: Send + 'static>(errand: NonNull<Errand>) {
    // SAFETY: by contract: the reference stays until `free`.
    let (late, value) = unsafe {
        let held = core::mem::ManuallyDrop::new(Held::<Room<T>, T>::from_room(errand.cast()));
        (held.room().late, held.take_back())
    };
    late(value);
}

/// # Safety
/// The errand of a `Room<T>`, which is over: gives up the reference that it was started with.
unsafe fn free<T: Send + 'static>(errand: NonNull<Errand>) {
    // SAFETY: this is the reference that the errand was started with, given up once.
    drop(unsafe { Held::<Room<T>, T>::from_room(errand.cast()) });
}
