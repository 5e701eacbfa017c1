//! What is urgent: a process of priority `Max` or `High` does not wait for the end of a slice behind one that is less urgent; nor one
//! of priority `High` with a deadline behind another `High` one that is due later, or has none.
//!
//! Whoever makes such a process runnable sees to it that the core it waits on considers a preemption at once:
//! - on the core itself, in a turn, the turn is asked for; the section that the caller is in ends with a preemption;
//! - in an interrupt nothing is needed, because each interrupt ends with considering one;
//! - another core, if it is not idle, is sent the wake-up interrupt, whatever it runs: what it is seen to run is an estimate, and if
//!   it is between two turns the process might otherwise wait behind the one that it has just chosen.
//!
//! What the core does then is in `run/preempt.rs`. A timer that wakes something urgent interrupts by itself, and that interrupt ends
//! in the same way.

use core::ptr::NonNull;

use crate::arch::{clock, ipi};
use crate::mem::stack::StackBlock;
use crate::sched::cores::Core;
use crate::sched::place::wake;
use crate::sched::process::{Header, Priority, deadline};

/// Whether what waits with the first priority preempts what runs with the second.
#[inline(always)]
pub(crate) fn preempts(waiting: Priority, running: Priority) -> bool {
    waiting.is_urgent() && waiting < running
}

/// Whether what waits with this priority preempts the turn in progress, of which the caller is a part, or which it has interrupted.
#[inline(always)]
pub(super) fn preempts_the_turn(waiting: Priority) -> bool {
    let running = NonNull::new(StackBlock::current().process().cast::<Header>());
    // SAFETY: the process runs on this stack, so it is alive.
    running.is_some_and(|running| preempts(waiting, unsafe { running.as_ref() }.priority()))
}

/// Whether something waits on this core that goes before what runs there, which is `High`, or may: of what other cores have sent nobody knows
/// yet when it is due, and of what a timer that is due wakes, or an interrupt has raised (`may_wake`), nor whether it is `Max`. So where
/// there are deadlines, or was ever a `Max` process, a timer is fired whoever it wakes: the job of that begins no earlier.
#[inline(always)]
pub(crate) fn may_go_before(core: &Core, running: &Header, may_wake: impl Fn(&Core) -> bool) -> bool {
    running.priority() == Priority::High && may_go_before_high(core, running, may_wake)
}

#[cold]
#[inline(never)]
fn may_go_before_high(core: &Core, running: &Header, may_wake: impl Fn(&Core) -> bool) -> bool {
    let due = running.due();
    core.queue.earliest() < due
        || (core.queue.has_unsorted() && deadline::earliest_from(clock::now()) < due)
        || ((deadline::are_in_use() || Priority::is_max_used()) && may_wake(core))
}

/// A process of this priority, which is urgent, waits on this core from now on.
pub(super) fn ask_the_turn(core: &Core, waiting: Priority) {
    let block = StackBlock::current();
    let Some(running) = NonNull::new(block.process().cast::<Header>()) else { return };
    // SAFETY: the process runs on this stack, so it is alive.
    let running = unsafe { running.as_ref() };
    if preempts(waiting, running.priority()) {
        block.preempt().request();
    } else {
        ask_if_due_before(core, running, block);
    }
}

#[cold]
#[inline(never)]
fn ask_if_due_before(core: &Core, running: &Header, block: &StackBlock) {
    if may_go_before(core, running, |_| false) {
        block.preempt().request();
    }
}

/// A process of this priority was delivered to `target`, which was not idle. The caller has passed a full barrier since.
pub(super) fn ask(target: &Core, here: Option<&Core>, waiting: Priority) {
    if waiting.is_urgent() && here.is_none_or(|here| here.id() != target.id()) {
        ipi::send(target.id());
    }
}

/// Where something urgent goes whose own core is in a turn that it does not preempt: to one that is idle, or in a turn that it does,
/// if there is one. All of it is an estimate.
pub(super) fn elsewhere<'a>(
    own: &'a Core,
    waiting: Priority,
    others: impl Iterator<Item = &'a Core>,
) -> &'a Core {
    if !waiting.is_urgent() || !own.in_turn.is_urgent() || wake::is_idle(own) {
        return own;
    }
    let mut best = own;
    for core in others {
        if wake::is_idle(core) {
            return core;
        }
        if !core.in_turn.is_urgent() {
            best = core;
        }
    }
    best
}
