//! The one global queue, for the dispatch scheme that has no other.

use core::ptr::NonNull;

use super::idle;
use super::priority::Priority;
use super::process::Header;
use crate::deque::Overflow;

static QUEUES: [Overflow<Header>; Priority::COUNT] = [const { Overflow::new() }; Priority::COUNT];

/// Puts a process at the back of its priority, and wakes a core for it.
pub(super) fn push(process: NonNull<Header>) {
    // SAFETY: a process in hand is alive.
    let priority = unsafe { process.as_ref() }.priority();
    // SAFETY: the process is the caller's, so in no list; processes may be handed to any core.
    unsafe { QUEUES[priority.index()].push(process) };
    idle::wake_thief();
}

/// Takes the oldest process of the highest priority. The scheme is the simple one: no credit for `Low`.
pub(super) fn take() -> Option<NonNull<Header>> {
    QUEUES.iter().find_map(Overflow::pop)
}

/// Whether nothing waits.
pub(super) fn is_empty() -> bool {
    QUEUES.iter().all(Overflow::is_empty)
}
