//! A core's loop on a fresh stack: after a preemption or a crash; or, where there is none, on the stack of what has crashed.

use core::ptr;

use crate::arch::{clock, irq, switch};
use crate::mem::stack::{self, StackBlock, StackRef};
use crate::sched::cores::handover::{Handover, Interrupted};
use crate::sched::cores::{Core, ThisCore};
use crate::sched::run::{beneath, core_loop, post_mortem, preempt, reserve, stop};
use crate::stats::{Activity, Name};

/// Where the core's loop begins.
pub(crate) extern "C" fn enter(_: usize) -> ! {
    // SAFETY: the stack's preemption count is 1, and this becomes the core's loop.
    let core = unsafe { ThisCore::of_loop() };
    match core.handover.take() {
        Handover::Turn(interrupted) => {
            // Time counts as running anyway.
            let now = begin(&core, || "a preemption", Some(interrupted.block));
            // SAFETY: left by the interrupt, for the loop that it has begun here.
            unsafe { leave(&core, &interrupted, now) };
        }
        Handover::Nothing => begin_after_crash(&core),
        Handover::Crashed(crashed) => {
            begin_after_crash(&core);
            // SAFETY: left by the crash, whose code does not go on; this is the core's loop, which begins here.
            unsafe { post_mortem::end(&core, crashed) };
        }
        Handover::WrittenDown(process, exit) => {
            begin_after_crash(&core);
            // SAFETY: as above, and on the same stack.
            unsafe { post_mortem::end_here(&core, process, exit) };
        }
    }
    // SAFETY: the core's block was set at its start, this stack's block by `start_on`, and the count is 1.
    unsafe { core_loop::run() };
    stop::core_stopped()
}

/// The loop begins, with interrupts unmasked: what lay beneath the turn that it was left in comes into its queue, because that was interrupted in turn, or has
/// crashed. Returns when, in clock ticks.
#[inline(always)]
fn begin(core: &ThisCore<'_>, name: Name, interrupted: Option<&StackBlock>) -> u64 {
    let (masked_at, now) = (core.take_masked(), clock::now());
    // SAFETY: the loop runs with interrupts unmasked; nothing here relies on them being masked.
    unsafe { irq::enable() };
    core.note_masked((masked_at, now), name, interrupted);
    beneath::put_into_queue(core);
    now
}

/// The same after a crash.
#[inline(never)]
fn begin_after_crash(core: &ThisCore<'_>) {
    // What crashed may have been a handler.
    core.enter(Activity::Running);
    begin(core, || "a crash", None);
}

/// Deals with a turn that was interrupted, at `now`, and gives what is urgent its own first if it may.
///
/// # Safety
/// As [`preempt::finish`].
#[inline(always)]
unsafe fn leave(core: &ThisCore<'_>, interrupted: &Interrupted, now: u64) {
    // SAFETY: by contract; who takes a turn for the loop that begins here is part of it.
    unsafe {
        if !beneath::may_lie(core, interrupted) {
            preempt::finish(core, interrupted);
        } else if let Some(urgent) = beneath::leave(core, interrupted, now) {
            core_loop::run_above(core, urgent);
        }
    }
}

/// A stack for a core's loop to go on with: from the pool or, if that is empty, the core's reserve.
pub(crate) struct FreshStack {
    stack: StackRef,
}

impl FreshStack {
    /// Takes one, unless all are in use. With preemption disabled.
    #[inline(always)]
    pub(crate) fn take(core: &Core) -> Option<Self> {
        Some(Self { stack: stack::take().or_else(|| reserve::take(core))? })
    }

    /// Begins the core's loop on it, which finds what was handed over.
    ///
    /// # Safety
    /// Interrupts are masked, on `core`. The code on the current stack is suspended, with its registers saved, or has ended; it holds no lock,
    /// and nothing of the core's.
    #[inline(always)]
    pub(crate) unsafe fn begin(self, core: &Core) -> ! {
        // The reserve, or one of the pool where the reserve is in use.
        let is_last = !reserve::is_there(core);
        core.on_reserve.set(is_last);
        if is_last {
            core.ask_attention();
        }
        let block = self.stack.block();
        block.preempt().reset(1);
        // SAFETY: the fresh stack is this core's alone, its preemption count is 1 as the loop needs it, and the rest the caller promised.
        unsafe { switch::start_on(self.stack.top(), ptr::from_ref(block).cast_mut().cast(), enter, 0) }
    }
}

/// Begins the core's loop on the current stack, whose code has ended.
///
/// # Safety
/// Nothing on the current stack is used again, and its code holds no lock.
pub(crate) unsafe fn abandon_turn(core: &Core, handover: Handover) -> ! {
    irq::disable();
    let block = StackBlock::current();
    block.preempt().reset(1);
    // What interrupts have noted of the turn since it ended.
    core.in_turn.end();
    let masked_at = core.take_masked();
    core.begin_masked(if masked_at == 0 { clock::now() } else { masked_at });
    core.handover.set(handover);
    let top = StackRef::top_of(block);
    // SAFETY: the code below the top of this stack has ended; nothing on it is used again.
    unsafe { switch::start_on(top, ptr::from_ref(block).cast_mut().cast(), enter, 0) }
}
