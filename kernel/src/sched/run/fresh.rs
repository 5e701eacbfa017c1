//! A core's loop on a fresh stack: after a preemption, or on the stack of what has crashed.

use crate::arch::{clock, irq, switch};
use crate::mem::stack::{StackBlock, StackRef};
use crate::sched::cores::handover::Handover;
use crate::sched::cores::{Core, ThisCore};
use crate::sched::run::{core_loop, crash, preempt, stop};
use crate::stats::Activity;

/// A core loop on a fresh stack, after a preemption.
pub(crate) extern "C" fn enter(_: usize) -> ! {
    // SAFETY: the stack's preemption count is 1, and this becomes the core's loop.
    let core = unsafe { ThisCore::of_loop() };
    let block = StackBlock::current();
    let handover = core.handover.take();
    if !matches!(handover, Handover::Turn(_)) {
        // What crashed may have been a handler. After a preemption time counts as running anyway.
        core.enter(Activity::Running);
    }
    let masked = (core.take_masked(), clock::now());
    // SAFETY: the loop runs with interrupts unmasked; nothing here relies on them being masked.
    unsafe { irq::enable() };
    match &handover {
        Handover::Turn(interrupted) => core.note_masked(masked, || "a preemption", Some(interrupted.block)),
        Handover::Nothing | Handover::Crashed(..) => core.note_masked(masked, || "a crash", None),
    }
    if block.is_in_reserve() {
        // SAFETY: what ran on this stack has crashed, and its reserve is far below this.
        unsafe { block.map_reserve(false) };
    }
    #[cfg(target_os = "none")]
    if let Some(from) = core.remains.take() {
        // SAFETY: this is the first code on the stack since the crash.
        unsafe { block.clear_below(from) };
    }
    match handover {
        Handover::Nothing => {}
        // SAFETY: left by the crash, whose code and stack are gone.
        Handover::Crashed(process, exit) => unsafe { crash::end(&core, process, exit) },
        // SAFETY: this is the core's loop, which begins here.
        Handover::Turn(interrupted) => unsafe { preempt::finish(&core, interrupted) },
    }
    // SAFETY: the core's block was set at its start, this stack's block by `start_on`, and the count is 1.
    unsafe { core_loop::run() };
    stop::core_stopped()
}

/// Suspends nothing, but ends what runs on this stack: a crash. Never returns; the stack is lost to the
/// crashed code and becomes this core's loop's again. Its remains lie from that address on, or, if that is zero, anywhere.
///
/// # Safety
/// The current stack block is that of a process that cannot go on. No lock is held.
pub(crate) unsafe fn abandon_turn(remains: usize) -> ! {
    irq::disable();
    let block = StackBlock::current();
    block.preempt().reset(1);
    // SAFETY: preemption is disabled by the line above.
    let core = unsafe { Core::this() };
    core.in_turn.end();
    block.forget_yield();
    core.remains.set(Some(remains));
    let top = StackRef::top_of(block);
    // SAFETY: the code below the top of this stack has ended; nothing on it is used again.
    unsafe { switch::start_on(top, core::ptr::from_ref(block).cast_mut().cast(), enter, 0) }
}
