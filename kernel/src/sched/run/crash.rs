//! The one path of a crash: the end of a process that panicked or faulted. It alone ends, on the path of a preemption.
//!
//! Its stack is abandoned, whatever is on it: destructors do not run, because the code stopped at an unknown point. The core goes on with
//! a fresh loop on another stack, with interrupts unmasked, because the rest may take long. The loop says what has happened and writes it down
//! (`crash/`), and ends the process: its mailboxes are closed, who watches it is told, and its handle reports the crash. What is left on the stack
//! that was abandoned is looked at later (`run/remains.rs`).
//!
//! If no stack is free, and the core's reserve is in use, the loop begins on the same stack; then all that comes before the end of the process is
//! done where it failed, for a handler with interrupts masked.
//!
//! What must hold, and is asked first:
//! - the code that failed runs on the stack of a process, and is no handler of an interrupt or fault;
//! - preemption is enabled there. With preemption disabled the code holds a lock or a half-changed queue of the kernel's
//!   own, and going on would spread the damage. A critical section of the application's disables it, too: that ends with the process.
//!
//! One such section may end all the same: one that has run out of stack goes on in the stack's reserve, and its process ends
//! after it.
//!
//! A panic's message may come from the application's own `Display`: that still runs as the process did. A failure
//! during the report takes this path too, and is not reported again: what is written down is the first. From then on preemption is disabled once, whatever
//! was requested before.

use core::ops::Range;
use core::ptr;

use crate::arch::backtrace::Place;
use crate::arch::handlers::Fault;
use crate::arch::switch::{Frame, KeptRegisters};
use crate::arch::{clock, irq, stack_layout, switch};
use crate::crash::{Called, CrashKind, Message, Remembered, Scene, Trace, stack_at};
use crate::mem::stack::StackBlock;
use crate::sched::cores::Core;
use crate::sched::cores::handover::{Cause, Crashed, Handover, Report};
use crate::sched::run::fresh::{self, FreshStack};
use crate::sched::run::{post_mortem, remains};
#[cfg(not(shuttle))]
use crate::sync::critical_section;

/// Whether the caller, which panicked, is a process that can be ended alone.
pub fn can_end_current() -> bool {
    switch::is_on_own_stack() && can_end(StackBlock::current())
}

/// Whether the code that faulted is a process that can be ended alone.
pub fn can_end_faulted(fault: &Fault) -> bool {
    let block = StackBlock::current();
    // One whose stack ran out behind a shield ends when that does, as at the end of a section.
    let goes_on = fault.in_reserve && block.is_shielded() && !block.is_in_reserve();
    fault.on_own_stack && !goes_on && can_end(block)
}

/// The code that faulted ran out of stack with preemption disabled, or behind a shield: lets it go on to the end of that section. Returns
/// whether it may. For the fault handler.
pub fn lend_reserve(fault: &Fault) -> bool {
    let block = StackBlock::current();
    if !fault.in_reserve || !fault.on_own_stack || block.process().is_null() || block.is_in_reserve() {
        return false;
    }
    // SAFETY: the stack runs here, and nothing is in its reserve yet.
    unsafe { block.map_reserve(true) };
    // The end of the section comes to `preempt::consider`. So does that of the kernel's section in one of the application's, which may go on
    // calling until the reserve is used up. Behind a shield with no section around it the end of that looks: nothing may be due early in a section of
    // an interrupt's handler.
    if !block.preempt().is_enabled() {
        block.preempt().request_early();
    }
    true
}

/// Ends the process that was lent its stack's reserve, whose code was interrupted or trapped in `frame`.
///
/// # Safety
/// As [`end_faulted`], in the handler of an interrupt or of the trap at the section's end.
// For the size of the unwind tables: it has one caller.
#[inline(always)]
pub(crate) unsafe fn end_overflowed(frame: &Frame) -> ! {
    // SAFETY: by contract. Where it ran out of stack is not known any more.
    unsafe { end_current(Some(frame), Cause::Stopped(CrashKind::StackOverflow)) }
}

/// Ends the process that was killed, whose code was interrupted or trapped in `frame`.
///
/// # Safety
/// As [`end_overflowed`], with preemption enabled in that code.
pub(crate) unsafe fn end_killed(frame: &Frame) -> ! {
    // SAFETY: by contract.
    unsafe { end_current(Some(frame), Cause::Stopped(CrashKind::Killed)) }
}

/// After an overflow, reports how large the stacks are and where that is set.
pub fn say_stack() {
    let slot = stack_layout::slot_bytes();
    crate::text!(
        "its stack has {} KiB, of {}; the boot argument stack_kib=N makes it larger",
        stack_layout::usable_bytes(slot) / 1024,
        slot / 1024
    );
}

/// Whether a process whose stack ran out in a section, which is over, can be ended there: the interrupt or trap came with no other section of
/// the kernel's.
pub(crate) fn can_end_overflowed(block: &StackBlock) -> bool {
    !block.is_shielded() && can_end(block)
}

/// Once for panics and faults.
#[inline(never)]
fn can_end(block: &StackBlock) -> bool {
    !block.process().is_null() && (block.preempt().is_enabled() || is_in_own_section(block))
}

/// Whether a critical section of the application's is all that disables preemption.
fn is_in_own_section(block: &StackBlock) -> bool {
    #[cfg(shuttle)]
    let is_inside = false;
    #[cfg(not(shuttle))]
    let is_inside = critical_section::is_inside();
    block.preempt().is_held_once() && is_inside
}

/// Ends the process that runs here, which has panicked, after `report` has said why, unless a report was in progress
/// already. What is said may come from the application, for example the `Display` of what it panicked with. That runs
/// in the process like what it did before: it may take long and may be preempted. `report` takes the message on the way, and returns
/// whether it has said anything. `above`: an address in the stack frame of whoever raised the panic, which is no part of the backtrace.
///
/// # Safety
/// The code of the running process will not go on: the caller is the panic handler, and [`can_end_current`].
pub unsafe fn end_panicked(kind: CrashKind, above: usize, report: impl FnOnce(&mut Message) -> bool) -> ! {
    let block = StackBlock::current();
    let scene = Scene { kind, pc: 0, address: None, trace: Trace::EMPTY };
    let mut crash = Remembered { scene, message: Message::new() };
    if block.crashes() == 0 {
        block.set_crashes(1);
        // What follows may run out of stack, too, or fail otherwise. Then this is what is written down.
        let place = &raw mut crash;
        block.remember(place.cast());
        // SAFETY: it stays there; whoever else uses it does so when this has come to its end.
        let crash = unsafe { &mut *place };
        if !block.preempt().is_enabled() {
            // SAFETY: preemption is disabled, and what panicked does not go on.
            unsafe { abandon_section() };
            // What was requested meanwhile the next interrupt sees to, or the next section's end.
            block.preempt().store(0);
        }
        // SAFETY: this is no handler, and no section of the kernel's: the process panicked with preemption enabled, perhaps
        // where only interrupts were masked, which ends here; or in a critical section of its own, which has ended.
        unsafe { irq::enable() };
        // SAFETY: the code of this process runs on this stack, and does not go on.
        let place = unsafe { raised_from(Place::here(), above, &stack_at(block, Place::here().sp)) };
        // The call, as opposed to what follows it.
        crash.scene.pc = place.pc.wrapping_sub(4);
        // SAFETY: as above.
        crash.scene.trace = unsafe { Trace::from(place, &stack_at(block, place.sp)) };
        if report(&mut crash.message) {
            crate::text!("{}", Called(crash.scene.pc, &crash.scene.trace));
        }
        // The report is complete. The stack is the same, whatever core it is on by now.
        block.set_crashes(0);
    }
    // SAFETY: the caller promised that the code of this process will not go on.
    unsafe { end_current(None, Cause::Panicked) }
}

/// The first of the callers of the code at `place` whose stack frame is beyond `above`; if there is none, that place.
///
/// # Safety
/// As [`Place::caller`].
pub(super) unsafe fn raised_from(place: Place, above: usize, stack: &Range<usize>) -> Place {
    let mut caller = place;
    while caller.sp <= above {
        // SAFETY: by contract.
        let Some(next) = (unsafe { caller.caller(stack) }) else { return place };
        caller = next;
    }
    caller
}

/// Ends the process that runs here, whose code has faulted. `report` says why, unless a report was in progress already.
///
/// # Safety
/// The code of the running process will not go on: the caller is the fault handler, with the frame of that code, and
/// [`can_end_faulted`].
pub unsafe fn end_faulted(fault: &Fault, frame: &Frame, report: Report) -> ! {
    // SAFETY: by contract, a process runs, so the scheduler does; the handler masks interrupts.
    unsafe {
        Core::this().fault.set(Some((*fault, report)));
        end_current(Some(frame), Cause::Faulted)
    }
}

/// Ends the process that runs here. `frame` is where its code stopped, unless that is the caller. Interrupts are masked while the core's loop
/// begins anew.
///
/// # Safety
/// As [`end_faulted`] or [`end_panicked`].
unsafe fn end_current(frame: Option<&Frame>, cause: Cause) -> ! {
    let mut kept = KeptRegisters::default();
    let here = switch::save_registers(&mut kept);
    let block = StackBlock::current();
    // From here on interrupts leave it alone. Forgets a request, too.
    block.preempt().reset(1);
    block.end_shields();
    // SAFETY: preemption is disabled by the line above, and what failed does not go on.
    unsafe { abandon_section() };
    irq::disable();
    // SAFETY: preemption is disabled above, and a process runs, so the scheduler does.
    let core = unsafe { Core::this() };
    // Of an interrupt it is known already.
    let masked_at = if matches!(cause, Cause::Stopped(_)) { core.take_masked() } else { 0 };
    core.begin_masked(if masked_at == 0 { clock::now() } else { masked_at });
    let saved = block.saved();
    match frame {
        // It is that of a fault. SAFETY: both are valid, and nobody else uses this stack's block.
        Some(frame) if !ptr::eq(frame, saved) => unsafe { ptr::copy_nonoverlapping(frame, saved, 1) },
        Some(_) => {}
        // SAFETY: as above.
        None => unsafe { (*saved).set_stack_pointer(here) },
    }
    core.in_turn.end();
    let crashed = Crashed { block, cause };
    if let Some(stack) = FreshStack::take(core) {
        core.handover.set(Handover::Crashed(crashed));
        // SAFETY: nothing on this stack goes on, by contract, and all locks are free.
        unsafe { stack.begin(core) }
    }
    if frame.is_none() {
        core.take_masked();
        // SAFETY: no handler, and what has masked them on this stack does not go on.
        unsafe { irq::enable() };
    }
    let (process, exit) = post_mortem::write_down(core, crashed);
    remains::note_at_once(crashed);
    // SAFETY: nothing on this stack is used again, by contract.
    unsafe { fresh::abandon_turn(core, Handover::WrittenDown(process, exit)) }
}

/// # Safety
/// As [`critical_section::abandon`].
unsafe fn abandon_section() {
    #[cfg(not(shuttle))]
    // SAFETY: by contract.
    unsafe {
        critical_section::abandon();
    }
}
