//! The end of a turn, for a process that has a deadline: whether it was late. What a deadline means is told in `process/deadline.rs`.

use crate::sched::cores::Core;
use crate::sched::process::Header;

/// A process has done what made it runnable: it waits or ends. It is still the caller's.
#[inline(always)]
pub(crate) fn note_done(core: &Core, process: &Header, now: u64) {
    if process.has_deadline() {
        note_if_late(core, process, now);
        process.end_job();
    }
}

/// The turn of a process is over, and it has more to do. If it is late, that is a job of its own: otherwise what never keeps its
/// deadline would keep all others from theirs.
#[inline(always)]
pub(crate) fn note_more_to_do(core: &Core, process: &Header, now: impl FnOnce() -> u64) {
    if process.has_deadline() && note_if_late(core, process, now()) {
        process.end_job();
    }
}

#[cold]
fn note_if_late(core: &Core, process: &Header, now: u64) -> bool {
    let is_late = now > process.due();
    core.statistics.deadlines_missed.add(is_late.into());
    is_late
}
