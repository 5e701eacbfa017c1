//! Each core's stack in reserve, for when the pool is empty. What a core on its reserve does is described in
//! `run/preempt.rs`.

use crate::arch::atomic::{AtomicU32, Ordering};
use crate::mem::stack::{self, StackRef};
use crate::sched::cores::Core;
use crate::sched::process::{Header, Priority};

/// How many cores have their reserve.
static RESERVES: AtomicU32 = AtomicU32::new(0);

/// How many stacks cores have in reserve; roughly, while they suspend and resume.
pub fn reserves() -> u32 {
    RESERVES.load(Ordering::Relaxed)
}

/// Takes the core's reserve, if it has one.
pub(crate) fn take(core: &Core) -> Option<StackRef> {
    let reserve = core.reserve.take()?;
    // Relaxed: a statistic.
    RESERVES.fetch_sub(1, Ordering::Relaxed);
    Some(reserve)
}

/// Whether the core has it in hand.
#[inline(always)]
pub(crate) fn is_there(core: &Core) -> bool {
    // SAFETY: the cell is the core's own, and nobody changes it meanwhile: preemption is disabled, and no interrupt does.
    unsafe { &*core.reserve.as_ptr() }.is_some()
}

/// A stack is not needed any more: the core's reserve comes first. With it, the core is not on its last stack.
pub(crate) fn keep_or_give(core: &Core, stack: StackRef) {
    match core.reserve.take() {
        None => {
            // Relaxed: as in `take`.
            RESERVES.fetch_add(1, Ordering::Relaxed);
            core.reserve.set(Some(stack));
            core.on_reserve.set(false);
        }
        Some(reserve) => {
            core.reserve.set(Some(reserve));
            stack::give(stack);
        }
    }
}

/// Gives a core the reserve that it begins with, if there is one.
pub(crate) fn prepare(core: &Core) {
    if let Some(reserve) = stack::take() {
        keep_or_give(core, reserve);
    }
}

/// Whether a process that the core's loop has taken must wait, because the loop runs on the core's last stack. After as
/// many refusals as processes wait in its queue, the loop looks for something to steal.
pub(crate) fn is_kept_waiting(core: &Core, process: &Header) -> bool {
    if !core.on_reserve.get() || process.has_yielded() || process.priority() <= Priority::High {
        return false;
    }
    if let Some(free) = stack::take() {
        keep_or_give(core, free);
        return false;
    }
    true
}
