//! Telling of an end those who watch. A few are told where somebody ended; were there many, that core would do nothing else meanwhile. So the
//! others are told by a process of its own, which is interrupted and moved like any other. Without memory for that process all are told there.

use super::builder::Spawn;
use crate::sched::place::yield_now;
use crate::sched::process::{Header, reductions};
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

/// So many are told between two looks at whether the turn is used up.
const STEP: usize = 32;

/// What one costs the process's turn, counted in messages.
const REDUCTIONS: u64 = 4;

#[cold]
fn tell_later(mut rest: Rest) {
    let body = async move {
        while rest.tell(STEP) {
            reductions::charge(REDUCTIONS * STEP as u64);
            if reductions::is_exhausted() {
                yield_now().await;
            }
        }
    };
    // If it is not started, the future is dropped, which tells them.
    let _ = Spawn::new().unlimited().start_alone_in(None, body);
}
