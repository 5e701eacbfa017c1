//! Resuming a process on the stack that it was suspended on. How it was suspended is in `run/preempt.rs`.

use core::ptr::NonNull;

use crate::arch::{append, clock, irq, switch};
use crate::mem::stack::{StackBlock, StackRef};
use crate::sched::cores::{Core, ThisCore};
use crate::sched::place::enqueue;
use crate::sched::process::{Header, PieceNow};
use crate::sched::run::{kill, reserve};
use crate::stats::Activity;
use crate::time::comparator;
use crate::trace::{self, Kind};

/// Resumes a suspended process, leaving the current stack behind.
///
/// # Safety
/// The caller is `core`'s loop, took from a queue the process that is suspended on `block`, and keeps
/// nothing that needs dropping on the current stack.
pub(crate) unsafe fn resume(core: &'static Core, block: NonNull<StackBlock>) -> ! {
    // SAFETY: a suspended process's stack stays alive until it is resumed.
    let frame = unsafe { block.as_ref() }.saved();
    // Here and not where it was suspended, which may be in the way of something urgent.
    // SAFETY: the frame is that of the suspended code, which the caller alone resumes.
    append::restart(unsafe { &mut *frame });
    // SAFETY: by contract the stack is alive.
    let process = NonNull::new(unsafe { block.as_ref() }.process().cast::<Header>());
    if let Some(process) = process {
        // SAFETY: the process is suspended on that stack, or its turn was interrupted there, so it is alive, and this core's.
        let table = unsafe { process.as_ref() }.vtable();
        if let Some(piece) = table.piece {
            // SAFETY: as above; its turn begins.
            unsafe { piece(process, PieceNow::GoesOn) };
            // It may have woken somebody urgent, and in a turn that goes on nothing is chosen.
            // SAFETY: by contract the caller is the core's loop.
            let core = unsafe { ThisCore::of_loop() };
            enqueue::queue_chosen(&core);
        }
    }
    irq::disable();
    // A behaviour that was suspended is asked there whether it was killed. A worker's turn is not: one that cannot be suspended comes
    // here, too, and is to come on.
    let is_asked = |process: NonNull<Header>| {
        // SAFETY: the process is suspended on that stack, or its turn was interrupted there, so it is alive.
        let table = unsafe { process.as_ref() }.vtable();
        table.is_to_end.is_some() && table.detach.is_none()
    };
    if StackBlock::current().preempt().is_requested()
        || (kill::is_any_pending() && process.is_some_and(is_asked))
    {
        // Or something urgent came after the choice of this process: it is interrupted as soon as it goes on.
        comparator::arm_if_earlier(clock::now());
    }
    let (_, now) = core.enter(Activity::Running);
    core.begin_masked(now);
    if let Some(process) = process {
        trace::note_at(now, Kind::Resumed, process.addr().get() as u64, 0, None);
    }
    // SAFETY: the current stack is this core loop's, which ends here; `after_resume` gives it back once
    // it has been left.
    core.left_stack.set(Some(unsafe { StackRef::current() }));
    // SAFETY: the frame was saved by the interrupt that suspended the process, and nobody else resumes it, because the
    // process was in one queue only. Interrupts are masked.
    unsafe { switch::resume(frame, block.as_ptr().cast(), after_resume, 0) }
}

/// Runs in the name of the resumed stack, before its registers are restored.
extern "C" fn after_resume(_: usize) {
    // SAFETY: interrupts are masked.
    let core = unsafe { Core::this() };
    core.on_reserve.set(false);
    if let Some(left) = core.left_stack.take() {
        reserve::keep_or_give(core, left);
    }
    let block = StackBlock::current();
    core.end_masked(|| "a resumption", Some(block));
    // The suspended code had preemption enabled, or had just enabled it.
    block.preempt().reset(0);
}
