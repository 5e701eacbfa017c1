//! What a core's loop does later on behalf of a caller. What is short and the kernel's own it does directly; what is
//! longer, or the application's, runs in a process of its own.

use core::ptr::NonNull;

use crate::arch::CoreId;
use crate::mem::OutOfMemory;
use crate::sched::policy::lead::lead;
use crate::sched::process::Step;
use crate::sched::spawn::early;
use crate::sched::spawn::errand::Errand;
use crate::time::{self, DelayedCall, Held, Instant, TakeBack};

/// A value that waits for its moment, and what is done with it then.
pub(crate) trait Waiting: TakeBack + Sized {
    /// The moment has come. In the core's loop, so this runs nothing of the application's. What it returns goes to
    /// [`Self::late`].
    fn now(self) -> Result<(), Self>;

    /// The rest, in a process.
    fn late(self);

    /// Whether it is for somebody of priority `Max` or `High`, as far as is known.
    fn is_urgent(&self) -> bool;

    /// Whether [`Self::now`] on this core, in its loop, is seen by nobody before a resident that is pinned to the core begins a turn there.
    fn stays_on(&self, core: CoreId) -> bool;
}

/// The right to take back what waits for its moment. Dropping this lets it go on.
pub(crate) struct Later<V>(DelayedCall<V>);

impl<V> Later<V> {
    /// Lets `value` wait until `moment`, at least. It counts as work until it is dealt with.
    ///
    /// # Errors
    /// The value comes back when there is no memory.
    pub(crate) fn set<T: Waiting<Taken = V>>(moment: Instant, value: T) -> Result<Self, (OutOfMemory, T)> {
        let is_urgent = value.is_urgent();
        let urgency = (is_urgent, lead(is_urgent));
        DelayedCall::set(moment, urgency, Errand::new(run::<T>, free::<T>), value, fire).map(Self)
    }

    /// Whether the value still waits; it may be taken at any moment.
    pub(crate) fn is_pending(&self) -> bool {
        self.0.is_pending()
    }

    /// Takes the value back, unless its moment has come already.
    pub(crate) fn cancel(self) -> Option<V> {
        self.0.cancel()
    }
}

fn fire<T: Waiting>(value: T, held: Held<Errand, T>) {
    early::begin(held.moment(), |core| value.stays_on(core.id()));
    if let Err(value) = value.now() {
        time::hold_until(held.moment());
        held.put_back(value);
        // SAFETY: a delayed call fires once. The reference that is given up here keeps it until `free`.
        unsafe { Errand::start(held.into_room()) };
    }
}

/// # Safety
/// The errand of a delayed call of a `T`, to which [`fire`] has put the value back, once.
unsafe fn run<T: Waiting>(errand: NonNull<Errand>) -> Step {
    // SAFETY: by contract: the reference stays until `free`.
    let value = unsafe {
        let held = core::mem::ManuallyDrop::new(Held::<Errand, T>::from_room(errand));
        held.take_back()
    };
    value.late();
    Step::Done
}

/// # Safety
/// The errand of a delayed call of a `T`, which is over: gives up the reference that it was started with.
unsafe fn free<T: Waiting>(errand: NonNull<Errand>) {
    // SAFETY: this is the reference that the errand was started with, given up once.
    drop(unsafe { Held::<Errand, T>::from_room(errand) });
}
