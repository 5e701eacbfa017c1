//! Telling of an end those who watch. A few are told where somebody ended; were there many, that core would do nothing else meanwhile. So the
//! others are told by a process of its own, which is interrupted and moved like any other, but never killed: a watch that is being told then
//! would not tell. Without memory for that process all are told there.

use alloc::boxed::Box;
use core::ptr::NonNull;

use super::errand::Errand;
use crate::mem;
use crate::sched::process::{Header, Step};
use crate::sync::Identity;
use crate::watch::{self, Exit, Rest};

/// A process has ended, as its run state says by now: tells those who watch it. Runs nothing of the application's.
#[inline(always)]
pub(crate) fn tell_of_process(process: &Header, exit: Exit) {
    if process.is_watched_at_end() {
        tell(process.identity(), process.told(exit));
    }
}

/// The same of whoever has ended, which can be seen by now, and may be watched.
#[cold]
#[inline(never)]
pub(crate) fn tell(who: Identity, exit: Exit) {
    if let Some(rest) = watch::tell(who, exit) {
        tell_later(rest);
    }
}

/// What tells the others.
#[repr(C)]
struct Later {
    errand: Errand,
    rest: Rest,
}

/// So many are told in a turn: some hundred thousand instructions.
const IN_A_TURN: usize = 512;

#[cold]
fn tell_later(rest: Rest) {
    // Without memory the rest is dropped, which tells them.
    if let Ok(later) = mem::kernel_box_with(move || Later { errand: Errand::lasting(run, free), rest }) {
        // SAFETY: it stays in its box until it is freed by `free`, and is nobody else's.
        unsafe { Errand::start(NonNull::from(Box::leak(later)).cast()) };
    }
}

/// # Safety
/// `errand` is the first part of a [`Later`], which nobody else uses.
unsafe fn run(errand: NonNull<Errand>) -> Step {
    // SAFETY: by contract.
    let has_more = unsafe { (*errand.cast::<Later>().as_ptr()).rest.tell(IN_A_TURN) };
    if has_more { Step::Yield } else { Step::Done }
}

/// # Safety
/// As [`run`]; the box is given up.
unsafe fn free(errand: NonNull<Errand>) {
    // SAFETY: by contract; it was made in `tell_later`.
    drop(unsafe { Box::from_raw(errand.cast::<Later>().as_ptr()) });
}
