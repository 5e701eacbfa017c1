//! When what crashed code leaves on its stack is noted for the collection, and overwritten: before the stack is used again, and after whoever relied
//! on that code was told.
//!
//! It takes three instructions for each byte that was in use, which may be 50 KiB or, if the application wants so, a megabyte. So the core's loop does a
//! little of it at a time, between two turns, and what is urgent has its turns in between; after a slice something is done between any two of them. What nobody can
//! reach but from there is no root meanwhile. Nothing can free it before it is noted, and what was noted may be freed.
//!
//! A core has the remains of one crash to look at. If there is a second one it does the rest of the first at once.

use crate::arch::clock;
use crate::mem::stack::{StackBlock, StackRef};
use crate::sched::cores::handover::Crashed;
use crate::sched::cores::remains::Remains;
use crate::sched::cores::{Core, ThisCore};
use crate::sched::policy::settings::{self, Setting};
#[cfg(target_os = "none")]
use crate::sched::run::collect;
use crate::sched::run::{attention, reserve};

/// Leaves to the core's loop, which the caller is a part of, what is left of a crash on another stack than that.
pub(super) fn leave(core: &ThisCore<'_>, crashed: Crashed) {
    if let Some(mut earlier) = core.remains.take() {
        while go_on_with(&mut earlier) {}
        end(core, &earlier);
    }
    core.remains.set(Some(Remains::new(crashed)));
    core.ask_attention();
}

/// Notes all that is left of a crash at once, where no other stack is free. With preemption disabled.
pub(super) fn note_at_once(crashed: Crashed) {
    let mut remains = Remains::new(crashed);
    // SAFETY: by contract; what this core writes there meanwhile counts one way or the other.
    while unsafe { remains.note() } {}
}

/// Overwrites what is left on the stack that the caller runs on.
///
/// # Safety
/// The caller is the first code on the stack of `block` since what was there crashed.
pub(super) unsafe fn clear_here(block: &StackBlock) {
    if block.is_in_reserve() {
        // SAFETY: what ran on this stack has crashed, and its reserve is far below this.
        unsafe { block.map_reserve(false) };
    }
    #[cfg(target_os = "none")]
    // SAFETY: by contract.
    unsafe {
        block.clear_below();
    }
}

/// Nothing is left of a crash.
pub(super) fn are_gone() {
    #[cfg(target_os = "none")]
    collect::after_crash();
}

/// Whether the core has something to look at.
#[inline(always)]
pub(crate) fn is_wanted(core: &Core) -> bool {
    core.remains.get().is_some()
}

/// Whether what is urgent may go before it.
#[inline(always)]
pub(crate) fn may_wait(core: &Core) -> bool {
    core.remains.get().is_none_or(|remains| !is_overdue(core, &remains))
}

/// It has waited for a slice; or the core's loop is on its last stack, and this is one more.
fn is_overdue(core: &Core, remains: &Remains) -> bool {
    core.on_reserve.get() || clock::now() >= remains.since + settings::ticks(Setting::SliceMicroseconds)
}

/// So much is done between two urgent turns of what is overdue.
const AT_ONCE: usize = 16;

/// Goes on until nothing is left, or something urgent is to have the next turn. In the core's loop, between two turns.
pub(super) fn go_on(core: &ThisCore<'_>) {
    let Some(mut remains) = core.remains.take() else { return };
    let mut done = 0;
    loop {
        attention::look_for_urgent(core);
        // Not what is flagged: the flag may be stale, and then nobody would come back here.
        let waits = core.queue.has_urgent_waiting() || core.chosen.is_some();
        let least = match (core.on_reserve.get(), is_overdue(core, &remains)) {
            // Who has the next turn may go on for ever, and nobody else could have one.
            (true, _) => usize::MAX,
            (false, true) => AT_ONCE,
            (false, false) => 0,
        };
        if waits && done >= least {
            return core.remains.set(Some(remains));
        }
        if !go_on_with(&mut remains) {
            return end(core, &remains);
        }
        done += 1;
    }
}

/// Does a little. Whether anything is left. In the core's loop, on another stack.
fn go_on_with(remains: &mut Remains) -> bool {
    // SAFETY: nothing runs on that stack since the crash, and nobody else knows of it; a loop has preemption disabled, and what is not noted
    // is not overwritten.
    unsafe { remains.note() || remains.clear() }
}

/// All of it is done.
fn end(core: &Core, remains: &Remains) {
    let block = remains.block;
    if block.is_in_reserve() {
        // SAFETY: nothing runs there.
        unsafe { block.map_reserve(false) };
    }
    // SAFETY: as above, and nobody else knows of it.
    reserve::keep_or_give(core, unsafe { StackRef::abandoned(block) });
    are_gone();
}
