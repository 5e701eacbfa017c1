//! Preemption: stacks are lent.
//!
//! A turn runs directly on its core's stack, and pays nothing for being preemptible. The timer interrupt
//! counts slice ends; a turn that has seen two has had at least one whole slice. Then, if something else
//! waits, or the balancer could fetch something, the core leaves its stack to the process:
//!
//! 1. the interrupt has saved all registers on that stack;
//! 2. a fresh stack is taken from the pool (none left: the process runs on, and a counter says so);
//! 3. a resident is asked to detach the piece of work that runs; an ordinary process stands for itself;
//! 4. the core starts a new loop on the fresh stack, which *then* puts the suspended process into a queue:
//!    earlier, another core could resume it while this one still uses its stack.
//!
//! Whoever takes the process from a queue leaves its own stack behind (it goes back to the pool once it is
//! left) and returns from that interrupt.
//!
//! A section that disables preemption is never interrupted this way: the request is remembered in the
//! stack's preemption word, and the end of the section enters here by a trap.
//!
//! The bound: a process that never yields holds its core for at most two slices while others wait, plus
//! the longest section with preemption disabled.

use core::ptr::NonNull;

use super::cores::Core;
use super::process::Header;
use super::settings::{self, Setting};
use super::{balance, core_loop, detached, enqueue, idle, residents, stop};
use crate::arch::atomic::Ordering;
use crate::arch::switch::{self, Frame};
use crate::arch::{clock, irq, timer};
use crate::mem::stack::{self, StackBlock, StackRef};
use crate::stats::Activity;
use crate::time;

/// Slice ends a turn may see before it is preempted: the first may come right after its start.
const SLICE_ENDS: u32 = 2;

/// The core's timer fired.
pub(super) fn on_timer() {
    // SAFETY: interrupts are unmasked only after the core's block was set.
    let core = unsafe { Core::this() };
    // Relaxed throughout: this core's own loop and interrupt.
    let interrupted = core.enter(Activity::Interrupt);
    core.timer_due.store(1, Ordering::Relaxed);
    let now = clock::now();
    let end = core.slice_end.get();
    if end != 0 && now >= end {
        core.slice_end.set(0);
        if core.busy.load(Ordering::Relaxed) != 0 {
            core.slices.store(core.slices.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
            if !core.queue.is_empty() || running_backlog() > 0 {
                // Work waits behind a long turn: let an idle core come for it.
                idle::wake_thief();
            }
            ensure_slice_timer(core);
        }
    } else if end != 0 {
        // It was a timer of the wheel's; the slice goes on.
        timer::arm(end);
    }
    core.enter(interrupted);
}

/// What waits for the resident that runs here, if one does.
fn running_backlog() -> u32 {
    let Some(process) = NonNull::new(StackBlock::current().process().cast::<Header>()) else { return 0 };
    // SAFETY: the process runs on this stack, so it is alive.
    unsafe { residents::backlog(process) }
}

/// Counts slices from now on, unless one is being counted. The turns in between cost one look.
#[inline]
pub(super) fn ensure_slice_timer(core: &Core) {
    if core.slice_end.get() == 0 {
        let end = clock::now() + settings::ticks(Setting::SliceMicroseconds);
        core.slice_end.set(end);
        timer::arm_if_earlier(end);
    }
}

/// Arms the timer after the wheel's timers have fired: for the end of the slice, or for the next timer.
pub(super) fn arm_timer(core: &Core) {
    let slice = Some(core.slice_end.get()).filter(|&end| end != 0);
    match (slice, time::next_deadline(core.id())) {
        (None, None) => timer::disarm(),
        (Some(at), None) | (None, Some(at)) => timer::arm(at),
        (Some(slice), Some(next)) => timer::arm(slice.min(next)),
    }
}

/// Another core rang. The core loop, or the turn's end, does what is needed.
pub(super) fn on_wake_up() {}

/// The end of an interrupt, or of a section that postponed a preemption.
///
/// # Safety
/// Interrupts are masked; `frame` is the complete state of the code that was interrupted on this stack.
pub(super) unsafe fn consider(frame: *mut Frame) {
    let block = StackBlock::current();
    let Some(process) = NonNull::new(block.process().cast::<Header>()) else { return };
    // SAFETY: preemption cannot happen here, with interrupts masked, and the scheduler runs.
    let core = unsafe { Core::this() };
    // Relaxed: this core's own.
    if core.slices.load(Ordering::Relaxed) < SLICE_ENDS || !is_worth_it(core, process) {
        return;
    }
    if !block.preempt().is_enabled() {
        block.preempt().request();
        return;
    }
    // SAFETY: by contract; preemption was enabled, so the turn holds no lock.
    unsafe { lend_stack(core, block, process, frame) };
}

/// Whether anything would run in the process's place.
fn is_worth_it(core: &Core, process: NonNull<Header>) -> bool {
    // SAFETY: the process runs, so it is alive.
    let is_resident = unsafe { process.as_ref() }.vtable().detach.is_some();
    is_resident
        || core_loop::has_work(core)
        || balance::is_called_for(core)
        || time::next_deadline(core.id()).is_some_and(|deadline| deadline <= clock::now())
        || stop::is_requested()
}

/// # Safety
/// As [`consider`], and the turn of `process` runs on the stack of `block` with preemption enabled.
unsafe fn lend_stack(
    core: &'static Core,
    block: &'static StackBlock,
    process: NonNull<Header>,
    frame: *mut Frame,
) {
    // From here on this is ordinary kernel code that happens to have interrupts masked.
    block.preempt().reset(1);
    // Relaxed: this core's own. If the attempt fails, the next is two slices away.
    core.slices.store(0, Ordering::Relaxed);
    let Some(fresh) = stack::take() else {
        core.statistics.preemptions_without_stack.bump();
        block.preempt().reset(0);
        return;
    };
    // SAFETY: the process runs, so it is alive.
    let Some(handover) = (unsafe { hand_over(core, process) }) else {
        stack::give(fresh);
        core.statistics.detachments_refused.bump();
        block.preempt().reset(0);
        return;
    };
    let suspended = handover[0].unwrap_or(process);
    block.set_process(suspended.as_ptr().cast());
    block.set_frame(frame);
    // SAFETY: both are alive: one runs, or was just made.
    unsafe { suspended.as_ref() }.suspend_on(core::ptr::from_ref(block).cast_mut());
    core.handover.set(handover);
    core.busy.store(0, Ordering::Relaxed);
    core.statistics.preemptions.bump();
    fresh.block().preempt().reset(1);
    // SAFETY: the fresh stack is this core's alone, its preemption count is 1 as the loop needs it, and
    // interrupts are masked. The code suspended here holds no lock and nothing of the core's.
    unsafe {
        switch::start_on(fresh.top(), core::ptr::from_ref(fresh.block()).cast_mut().cast(), fresh_loop, 0)
    }
}

/// What the fresh loop has to enqueue: the process to suspend and, if that is a detached piece, the
/// resident it came from. `None` if the resident refuses or memory is short.
///
/// # Safety
/// The turn of `process` runs on the current stack and holds no lock.
unsafe fn hand_over(core: &Core, process: NonNull<Header>) -> Option<[Option<NonNull<Header>>; 2]> {
    // SAFETY: by contract.
    let header = unsafe { process.as_ref() };
    let Some(detach) = header.vtable().detach else { return Some([Some(process), None]) };
    let reservation = detached::Reservation::new(header.priority(), core.id())?;
    // SAFETY: by contract.
    let token = unsafe { detach(process) }?;
    Some([Some(reservation.fill(token)), Some(process)])
}

/// A core loop on a fresh stack, after a preemption.
extern "C" fn fresh_loop(_: usize) -> ! {
    // SAFETY: the stack's preemption count is 1.
    let core = unsafe { Core::this() };
    let [suspended, resident] = core.handover.take();
    for process in [resident, suspended].into_iter().flatten() {
        // SAFETY: the suspended process's stack has been left; this is the core's own loop. A resident
        // whose piece was detached takes its next turn from the queue like everyone.
        unsafe {
            if Some(process) == resident {
                process.as_ref().turns().requeue();
                core.queue.prefer_bound();
            }
            enqueue::requeue(core, process);
        }
    }
    // SAFETY: the loop runs with interrupts unmasked; nothing here relies on them being masked.
    unsafe { irq::enable() };
    // SAFETY: the core's block was set at its start, this stack's block by `start_on`, and the count is 1.
    unsafe { core_loop::run() };
    stop::core_stopped()
}

/// Resumes a suspended process, leaving the current stack behind.
///
/// # Safety
/// The caller is `core`'s loop, took from a queue the process that is suspended on `block`, and keeps
/// nothing that needs dropping on the current stack.
pub(super) unsafe fn resume(core: &'static Core, block: NonNull<StackBlock>) -> ! {
    irq::disable();
    core.enter(Activity::Running);
    // SAFETY: the current stack is this core loop's, which ends here; `after_resume` gives it back once
    // it has been left.
    core.left_stack.set(Some(unsafe { StackRef::current() }));
    // SAFETY: a suspended process's stack stays alive until it is resumed.
    let frame = unsafe { block.as_ref() }.frame();
    // SAFETY: the frame was saved by the interrupt that suspended the process, and nobody else resumes it,
    // for the process was in one queue only. Interrupts are masked.
    unsafe { switch::resume(frame, block.as_ptr().cast(), after_resume, 0) }
}

/// Runs on the resumed stack, before its registers are restored.
extern "C" fn after_resume(_: usize) {
    // SAFETY: interrupts are masked.
    let core = unsafe { Core::this() };
    if let Some(left) = core.left_stack.take() {
        stack::give(left);
    }
    // The suspended code had preemption enabled, or had just enabled it.
    StackBlock::current().preempt().reset(0);
}

/// Suspends nothing, but ends what runs on this stack: a crash. Never returns; the stack is lost to the
/// crashed code and becomes this core's loop's again.
///
/// # Safety
/// Called from the turn of a process that cannot go on, with no lock held.
pub(super) unsafe fn abandon_turn() -> ! {
    irq::disable();
    let block = StackBlock::current();
    block.preempt().reset(1);
    // SAFETY: preemption is disabled by the line above.
    let core = unsafe { Core::this() };
    core.busy.store(0, Ordering::Relaxed);
    let top = StackRef::top_of(block);
    // SAFETY: the code below the top of this stack has ended; nothing on it is used again.
    unsafe { switch::start_on(top, core::ptr::from_ref(block).cast_mut().cast(), fresh_loop, 0) }
}
