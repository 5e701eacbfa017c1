//! What a core's loop does again and again on behalf of a caller, at equal distances, until it is given up or finds nobody to
//! do it for. What is done once is in `spawn/later.rs`.
//!
//! All is done by the loop itself, so it is short and the kernel's own. Only the end may drop what is the application's: then it
//! is left to a process.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use crate::arch::CoreId;
use crate::mem::OutOfMemory;
use crate::sched::policy::lead::lead;
use crate::sched::process::Step;
use crate::sched::spawn::early;
use crate::sched::spawn::errand::Errand;
use crate::time::{DelayedCall, Held, Instant, Schedule, TakeBack};

/// What became of one time.
pub(crate) enum Outcome {
    /// It was done.
    Done,
    /// It could not be done this time.
    LeftOut,
    /// It can never be done again.
    Over,
}

/// What is done again and again.
pub(crate) trait Repeating: Send + Sized + 'static {
    /// A moment has come. In the core's loop, so this runs nothing of the application's.
    fn once_more(&mut self) -> Outcome;

    /// The end. In the core's loop, too: what would run something of the application's comes back.
    fn end(self) -> Result<(), Self>;

    /// Whether it is for somebody of priority `Max` or `High`, as far as is known.
    fn is_urgent(&self) -> bool;

    /// As [`Waiting::stays_on`](super::later::Waiting::stays_on), of [`Self::once_more`].
    fn stays_on(&self, core: CoreId) -> bool;
}

/// What is done again and again, and when.
struct Repeated<T> {
    what: T,
    schedule: Schedule,
}

impl<T: Repeating> TakeBack for Repeated<T> {
    type Taken = ();

    fn taken_back(self) -> Option<()> {
        Some(())
    }
}

/// The right to give it up. Dropping this lets it go on.
pub(crate) struct Repeat(DelayedCall<()>);

impl Repeat {
    /// Does `what` at each moment of the schedule, at least. It counts as work until it is over.
    ///
    /// # Errors
    /// It comes back when there is no memory.
    pub(crate) fn set<T: Repeating>(schedule: Schedule, what: T) -> Result<Self, (OutOfMemory, T)> {
        let (first, is_urgent) = (schedule.due(), what.is_urgent());
        let (urgency, errand) = ((is_urgent, lead(is_urgent)), Errand::new(run::<T>, free::<T>));
        match DelayedCall::set(first, urgency, errand, Repeated { what, schedule }, fire) {
            Ok(call) => Ok(Self(call)),
            Err((error, repeated)) => Err((error, repeated.what)),
        }
    }

    /// Whether it is over, because it could never be done again.
    pub(crate) fn is_over(&self) -> bool {
        self.0.is_over()
    }

    /// How many times were left out so far.
    pub(crate) fn missed(&self) -> u32 {
        self.0.missed()
    }

    /// It is not done again, but for a time that has begun.
    pub(crate) fn cancel(self) {
        self.0.cancel();
    }
}

fn fire<T: Repeating>(mut repeated: Repeated<T>, held: Held<Errand, Repeated<T>>) {
    early::begin(held.moment(), |core| repeated.what.stays_on(core.id()));
    let left_out = match repeated.what.once_more() {
        Outcome::Done => 0,
        Outcome::LeftOut => 1,
        Outcome::Over => return end(repeated, held),
    };
    held.note_missed(repeated.schedule.advance_beyond(Instant::now()).saturating_add(left_out));
    let next = repeated.schedule.due();
    // SAFETY: this is the function, with what it got.
    if let Some((repeated, held)) = unsafe { held.again(repeated, next) } {
        end(repeated, held);
    }
}

fn end<T: Repeating>(repeated: Repeated<T>, held: Held<Errand, Repeated<T>>) {
    held.end();
    let Repeated { what, schedule } = repeated;
    if let Err(what) = what.end() {
        held.put_back(Repeated { what, schedule });
        // SAFETY: a call ends once. The reference that is given up here keeps it until `free`.
        unsafe { Errand::start(held.into_room()) };
    }
}

/// # Safety
/// The errand of a call of a `Repeated<T>`, to which [`end`] has put the value back, once.
unsafe fn run<T: Repeating>(errand: NonNull<Errand>) -> Step {
    // SAFETY: by contract: the reference stays until `free`.
    drop(unsafe { ManuallyDrop::new(Held::<Errand, Repeated<T>>::from_room(errand)).take_back() });
    Step::Done
}

/// # Safety
/// The errand of a call of a `Repeated<T>`, which is over: gives up the reference that it was started with.
unsafe fn free<T: Repeating>(errand: NonNull<Errand>) {
    // SAFETY: this is the reference that the errand was started with, given up once.
    drop(unsafe { Held::<Errand, Repeated<T>>::from_room(errand) });
}
