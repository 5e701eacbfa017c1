//! Residents: processes that are not futures, bound to one core for as long as they live, such as an executor's worker.
//! How one is started is in `spawn/resident.rs`.
//!
//! A resident is more than a future in one way: what the timer suspends is not the resident but the
//! piece of work it was carrying out, so that the resident itself goes on at once.

use alloc::boxed::Box;
use core::ptr::NonNull;

use crate::sched::process::Step;
use crate::watch::Exit;

/// A process bound to one core, with its own way of being preempted.
pub trait Resident: Send + Sync {
    /// One turn on the core it is bound to, with preemption enabled.
    ///
    /// After [`Resident::detach`] has returned `Some` during this call, the call no longer belongs to the resident. It
    /// may be on any core, and another call of `step` may be running meanwhile. Its return is the end of the detached
    /// piece, so it must return [`Step::Done`].
    fn step(&self) -> Step;

    /// The turn has used up its slice. Called with interrupts masked on the stack of `step`, which held no
    /// lock. To hand over the piece of work that runs, it records that and returns a token, which is dropped when that
    /// piece has ended. The stack is then suspended with the piece, and `step` called anew for the rest. `None`
    /// refuses: the turn runs on.
    fn detach(&self) -> Option<Box<dyn Detached>>;

    /// A slice has ended in its turn. Whether the piece of work that runs is the one that ran when the last one did, as far as can be
    /// said. Called by the timer's interrupt on its core, wherever the turn is.
    fn note_slice_end(&self) -> bool;

    /// Whether something waits for the end of its turn, of the first `most` that may: `None` if none does, and there are more. Called like
    /// [`Resident::note_slice_end`] with a few, because interrupts are masked, and like [`Resident::has_waiting`] with all.
    fn has_waiting_for_end(&self, most: usize) -> Option<bool>;

    /// The turn is to end behind the piece of work that runs. Whether it will, whatever it looks at. Called with interrupts masked on
    /// the stack of `step`, which holds no lock.
    fn end_turn(&self) -> bool;

    /// The piece of work that runs has panicked or faulted, and will not return. Called on its stack, with
    /// preemption disabled; `step` is called anew for the rest.
    fn crashed(&self, exit: Exit);

    /// What is at work in the turn that the caller is part of. Called on its stack, with preemption disabled.
    fn at_work(&self) -> Option<AtWork>;

    /// Whether the piece of work that runs is to end now, because whoever it is for was killed. Called on its core, on the stack of
    /// `step`, which holds no lock, with interrupts masked and preemption disabled.
    fn is_to_end(&self, asked: EndOfPiece) -> bool;

    /// Whether it only needs a turn in which it ends. Called with preemption disabled, while it is in no turn.
    fn is_ending(&self) -> bool;

    /// How much waits for this resident; read from any core, to find out whether anything is left.
    fn backlog(&self) -> u32;

    /// Whether something waits behind the piece of work that runs, at `now` in clock ticks. Called on its core, whose loop has
    /// interrupted `step`, which held no lock.
    fn has_waiting(&self, now: u64) -> bool;

    /// A turn is over in which it called [`give_back_later`](crate::sched::give_back_later): gives back a few of what it has in hand. Whether more
    /// are left. Called on its core, with preemption disabled, between its turns.
    fn give_back(&self) -> bool;

    /// What waits behind the piece of work that runs has waited long, and another core is idle: what the resident alone can
    /// get at goes where others find it. Called on its core, on the stack of `step`, which holds no lock.
    fn let_go(&self);

    /// Whether something of what waits for it may leave for another core; read from any core, at `now` in clock ticks.
    /// A later look may find more: what waits may leave once it has been seen waiting for long. Called with preemption disabled; it looks no
    /// further once something urgent has come.
    fn has_surplus(&self, now: u64) -> bool;
}

/// A detached piece of work: what the scheduler must know of it while it is suspended.
pub trait Detached: Send {
    /// The cores it may be resumed on, as a mask.
    fn affinity(&self) -> u64 {
        u64::MAX
    }

    /// It goes on, in a turn on the caller's core. Called by that core's loop right before it.
    fn goes_on(&self);

    /// Its turn is over: it is suspended again, or has returned; or it was interrupted because a core is idle, and [goes on](Self::goes_on) after this.
    /// Called by the core's loop right behind the turn, on the same core. (That of one that crashed is over, too, and [`Self::crashed`] is called
    /// instead.)
    fn stops(&self);

    /// The piece has panicked or faulted, and will not return. Called on its stack, with preemption
    /// disabled.
    fn crashed(&self, exit: Exit);

    /// As [`Resident::is_to_end`], of this piece.
    fn is_to_end(&self, asked: EndOfPiece) -> bool;

    /// What is at work in this piece.
    fn at_work(&self) -> Option<AtWork>;
}

/// What is known of a piece of work when it is asked whether it is to end.
#[derive(Clone, Copy, Debug)]
pub struct EndOfPiece {
    /// The process that it has become was killed.
    pub is_killed: bool,
    /// It has had a slice.
    pub is_long: bool,
}

/// What a resident, or a piece detached from it, works for: an actor whose behaviour runs. The scheduler passes it on
/// to code that knows what it means, see [`at_work_here`](crate::sched::at_work_here).
#[derive(Clone, Copy, Debug)]
pub struct AtWork {
    /// Where it lives.
    pub place: NonNull<()>,
    /// Which one of those that have lived there, one after another.
    pub life: u64,
    /// Its type.
    pub name: fn() -> &'static str,
}
