//! Owners: who receives from a mailbox, and whose crash therefore ends it.
//!
//! That is the process that runs, or in a behaviour the actor: a worker's process runs the behaviours of many actors, and
//! outlives the crash of each.

use super::files;
use crate::actor::{self, ActorId};
use crate::mem::stack::StackBlock;
use crate::sched::{self, ProcessRef};

/// Who has received last. Kept so that its number is nobody else's meanwhile.
pub(super) enum Owner {
    Process { _keeps: ProcessRef },
    Actor,
}

impl Owner {
    /// The one that the caller is part of.
    pub(super) fn here() -> Option<Self> {
        if sched::is_in_resident() {
            return actor::current().map(|_| Self::Actor);
        }
        sched::current_process().map(|_keeps| Self::Process { _keeps })
    }
}

/// A process has crashed. Called before anybody is told, while its header is alive.
pub(crate) fn process_crashed(number: usize) {
    files::crashed(Known::Process(number));
}

/// The behaviour of an actor has crashed.
pub(crate) fn actor_crashed(actor: ActorId) {
    files::crashed(Known::Actor(actor));
}

/// An owner, to be compared: what the receiver's end remembers of whom the block knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Known {
    Nobody,
    /// By its number.
    Process(usize),
    Actor(ActorId),
}

impl Known {
    /// A number that those who are there at the same time do not share.
    pub(super) fn place(self) -> usize {
        match self {
            Self::Nobody => 0,
            Self::Process(number) => number,
            Self::Actor(actor) => actor.place(),
        }
    }

    /// The one that the caller is part of.
    pub(super) fn here() -> Self {
        if sched::is_in_resident() {
            return actor::current().map_or(Self::Nobody, Self::Actor);
        }
        match StackBlock::running_process() {
            0 => Self::Nobody,
            process => Self::Process(process),
        }
    }
}
