//! Damage done on purpose, for the tests that the kernel notices it. Both stop the kernel in builds with debug
//! assertions, the second in every build.

use core::ptr::NonNull;

use crate::mem::stack::StackBlock;
use crate::sched::cores::{Core, ThisCore};
use crate::sched::policy::migration::Urgency;
use crate::sched::process::{Header, Runnable};
use crate::sched::run::migrate::move_process;
use crate::sync::PreemptGuard;

fn current() -> Option<NonNull<Header>> {
    NonNull::new(StackBlock::current().process().cast())
}

/// Puts the running process into its core's queue, where it has no business before its turn is over.
///
/// # Safety
/// The kernel is broken afterwards: the caller counts on its end.
pub unsafe fn queue_current() {
    let here = PreemptGuard::new();
    let (Some(core), Some(process)) = (ThisCore::of(&here), current()) else { return };
    // SAFETY: it is not the caller's to queue: that is the damage.
    core.push(unsafe { Runnable::new(process) });
}

/// Moves the running process to another core, as if a thief had found it in a queue.
///
/// # Safety
/// As [`queue_current`].
pub unsafe fn migrate_current() {
    let here = PreemptGuard::new();
    let (Some(core), Some(process)) = (Core::current(&here), current()) else { return };
    // SAFETY: the process runs, so it is alive.
    let _ = move_process(unsafe { process.as_ref() }, core, core, Urgency::Idle);
}
