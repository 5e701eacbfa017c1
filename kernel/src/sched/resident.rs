//! Residents: processes that are not futures, bound to one core for life, such as an executor's worker.
//!
//! A resident is more than a future in one way: what the timer suspends is not the resident but the
//! piece of work it was carrying out, so that the resident itself goes on at once.

use alloc::boxed::Box;

use super::step::Step;
use crate::arch::CoreId;

/// A process bound to one core, with its own way of being preempted.
pub trait Resident: Send + Sync {
    /// One turn on the core it is bound to, with preemption enabled.
    ///
    /// After [`Resident::detach`] has returned `Some` during this call, the call no longer speaks for the
    /// resident: it may be on any core, another call of `step` may be running meanwhile, and what it
    /// returns is the end of the detached piece: it must return [`Step::Done`].
    fn step(&self) -> Step;

    /// The turn has used up its slice. Called with interrupts masked on the stack of `step`, which held no
    /// lock. To hand over the piece of work that runs, records that, and returns a token that is dropped
    /// when that piece has ended; the stack is then suspended with the piece, and `step` called anew for
    /// the rest. `None` refuses: the turn runs on.
    fn detach(&self) -> Option<Box<dyn Detached>>;

    /// How much waits for this resident; read from any core, for thieves and the balancer.
    fn backlog(&self) -> u32;
}

/// A detached piece of work: what the scheduler must know of it while it is suspended.
pub trait Detached: Send {
    /// The cores it may be resumed on, as a mask.
    fn affinity(&self) -> u64 {
        u64::MAX
    }
}

/// Names a resident to those who wake it. Copyable; the resident's process lives until it returns
/// [`Step::Done`] itself.
pub trait Wake: Sync {
    /// Makes the resident runnable on its core, and ends that core's sleep.
    fn wake(&self);

    /// The core that the resident is bound to.
    fn core(&self) -> CoreId;
}
