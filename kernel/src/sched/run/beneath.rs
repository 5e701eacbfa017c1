//! A turn that is left for something urgent lies beneath that one's turn, and comes into a queue behind it.
//!
//! A turn that an interrupt ends is written down and goes into a queue before its core does anything else (`preempt::finish`): any later, and nobody
//! could find it. What is urgent waited for that. So where nobody would look for it, the urgent turn comes first. That is so for what is not urgent
//! itself, while no core is idle, or for what is bound to its core. It is put into its queue
//!
//! - when the urgent turn has ended, or was crashed or suspended, before the core's loop does anything else;
//! - at the first end of a slice that the urgent turn sees, or at the end of the section that it is in then. So another core finds it after a slice,
//!   however long that turn goes on.
//!
//! Meanwhile it is suspended as any other: who looks at stacks or for blocks in use finds it, and one that kills it leaves that in its word. It is
//! listed with its queue, if it was not before, as what runs in its first slice is not. It lies beneath one turn only: where that is left in turn, it is put
//! into its queue first. Nor does a turn that was suspended go on above it, because that leaves the loop which would see to it.

use crate::mem::stack::StackBlock;
use crate::sched::cores::beneath::Left;
use crate::sched::cores::handover::Interrupted;
use crate::sched::cores::{Core, ThisCore, roll_call};
use crate::sched::place::{enqueue, wake};
use crate::sched::process::Runnable;
use crate::sched::run::attention::{self, First};
use crate::sched::run::{due, ending, give_back, preempt, remains, slice};

/// Whether a turn that was interrupted may lie beneath that of what is urgent.
///
/// # Safety
/// As [`preempt::finish`].
#[inline(always)]
pub(super) unsafe fn may_lie(core: &ThisCore<'_>, interrupted: &Interrupted) -> bool {
    // SAFETY: the turn was interrupted, so its process is alive.
    let process = unsafe { interrupted.process.as_ref() };
    let table = process.vtable();
    interrupted.reason.is_urgent()
        // What is urgent itself waits in a queue, where it is compared with what it was left for.
        && !process.priority().is_urgent()
        // A resident, or a piece of its work, has more to be done with.
        && table.detach.is_none()
        && table.piece.is_none()
        && (process.is_pinned() || !wake::some_core_is_idle())
        // What it sees to before any turn.
        && !core.on_reserve.get()
        && !give_back::is_wanted(core)
        && !remains::is_wanted(core)
}

/// Leaves the turn, which was interrupted at `now`, and returns what is urgent and has the next one; `None` if the loop is to look for that, as it does for what
/// waits in a queue. Then the turn that was left has been put into its queue.
///
/// # Safety
/// As [`preempt::finish`], of a turn that [`may_lie`] beneath another.
#[inline(always)]
pub(super) unsafe fn leave(core: &ThisCore<'_>, interrupted: &Interrupted, now: u64) -> Option<Runnable> {
    // SAFETY: by contract; it was interrupted, so it is alive.
    let process = unsafe { interrupted.process.as_ref() };
    preempt::write_down(core, process, interrupted.block, now);
    core.beneath.put(&Left {
        process: interrupted.process,
        at: now,
        is_young: interrupted.turn.slices() == 0,
    });
    // What has asked so far is seen below, as in the core's loop.
    StackBlock::current().preempt().clear_request();
    // As where the core has waited (`idle`).
    let chosen = if core.queue.wants_urgent_look() { None } else { core.take_chosen() };
    if chosen.is_some() {
        return chosen;
    }
    if let First::Turn(next) = attention::first(core) {
        return Some(next);
    }
    put_into_queue(core);
    None
}

/// Puts what lies beneath a turn into its queue, if anything does.
#[inline(always)]
pub(super) fn put_into_queue(core: &ThisCore<'_>) {
    if core.beneath.is_some() {
        queue(core, true);
    }
}

/// The same in an interrupt that has met the turn above, which goes on for longer: another core that is idle is called.
///
/// # Safety
/// Interrupts are masked, and the turn on the stack of `block` was interrupted with preemption enabled.
#[cold]
#[inline(never)]
pub(super) unsafe fn put_into_queue_masked(core: &Core, block: &StackBlock) {
    if !core.beneath.is_some() {
        return;
    }
    // What it changes it guards, and the end of that must not come here again. What it requests is considered by the caller.
    block.preempt().reset(1);
    // SAFETY: the turn was in the middle of nothing, by contract, and preemption is disabled as long as this lives.
    queue(&unsafe { ThisCore::of_loop() }, false);
    slice::look_at_once(core);
    block.preempt().reset(0);
}

/// Whether what lies beneath the turn in progress is to come into its queue now.
#[inline(always)]
pub(super) fn is_overdue(core: &Core) -> bool {
    core.beneath.is_some() && core.in_turn.slices() != 0
}

#[inline(never)]
fn queue(core: &ThisCore<'_>, may_grow: bool) {
    let Some(Left { process, at, is_young }) = core.beneath.take() else { return };
    // SAFETY: its turn was left on this core, and it has been in nobody else's hand since.
    let left = unsafe {
        roll_call::enter(core.core(), process, may_grow);
        Runnable::new(process)
    };
    due::note_more_to_do(core, &left, || at);
    core.statistics.preemptions.bump();
    core.statistics.urgent_preemptions.bump();
    if left.run_state().is_ending() {
        ending::note();
    }
    enqueue::requeue_left(core, left, is_young, at);
}
