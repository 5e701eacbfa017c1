//! What the core loop can do with a process, by the kind of its body.

use alloc::boxed::Box;
use core::ptr::NonNull;

use super::Header;
use crate::sched::process::resident::{AtWork, Detached, EndOfPiece};
use crate::sched::process::step::Step;
use crate::watch::Exit;

/// Hands over the running piece of a resident, as [`Resident::detach`](crate::sched::process::Resident::detach).
pub(crate) type Detach = unsafe fn(NonNull<Header>) -> Option<Box<dyn Detached>>;

/// What becomes of a piece that was detached from a resident.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum PieceNow {
    /// As [`Detached::goes_on`].
    GoesOn,
    /// As [`Detached::stops`].
    Stops,
    /// It has returned: as [`Detached::stops`], and what stands for it is dropped, however many still refer to the process.
    Ends,
}

/// What the core loop can do with a process, by the kind of its body.
pub(crate) struct VTable {
    /// What it is, for messages that report a failure in it.
    pub name: fn() -> &'static str,
    /// Runs one turn. Called with preemption enabled, by one core at a time, while `RUNNING`.
    pub step: unsafe fn(NonNull<Header>) -> Step,
    /// It was killed before the turn that it is given now: what it owns is dropped. As `step`, and it is done. Without, nobody can kill it.
    pub cancel: Option<unsafe fn(NonNull<Header>) -> Step>,
    /// The body has panicked or faulted on its stack, which is gone, or was killed there. Called instead of `step`'s return, when that is on
    /// record.
    pub crash: unsafe fn(NonNull<Header>, Exit),
    /// For pieces detached from residents: what becomes of the piece. Called by the core's loop, before and after its turns. ([`Self::crash`] ends it
    /// by itself.)
    pub piece: Option<unsafe fn(NonNull<Header>, PieceNow)>,
    /// Frees the process. Called once, when the last reference is dropped.
    pub free: unsafe fn(NonNull<Header>),
    /// For residents: hands over the running piece, as [`Resident::detach`](crate::sched::process::Resident::detach).
    pub detach: Option<Detach>,
    /// For residents and pieces detached from them: whether the piece of work that runs is to end now, because it was killed, and can.
    /// Called on its core, where its turn was interrupted and holds no lock, with interrupts masked and preemption disabled.
    pub is_to_end: Option<unsafe fn(NonNull<Header>, EndOfPiece) -> bool>,
    /// For residents and pieces detached from them: what is at work in the turn that the caller is part of. Called with
    /// preemption disabled, while the process runs here.
    pub at_work: Option<unsafe fn(NonNull<Header>) -> Option<AtWork>>,
}
