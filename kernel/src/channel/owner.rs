//! Owners: who receives from a mailbox, and whose crash therefore ends it.
//!
//! That is the process that runs, or in a behaviour the actor: a worker's process runs the behaviours of many actors, and
//! outlives the crash of each.

use crate::sched::{self, ProcessRef};

/// Who has received last. Kept so that its number is nobody else's meanwhile.
pub(super) enum Owner {
    Process(ProcessRef),
    Actor,
}

impl Owner {
    /// The one that the caller is part of.
    pub(super) fn here() -> Option<Self> {
        if sched::is_in_resident() {
            return sched::at_work_here().map(|_| Self::Actor);
        }
        sched::current_process().map(Self::Process)
    }
}
