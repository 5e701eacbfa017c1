//! The end of a process that panicked or faulted: it alone ends, on the path of a preemption.
//!
//! Its stack is abandoned, whatever is on it: destructors do not run, for the code stopped at an unknown
//! point. Its handle reports the crash. The core goes on with a fresh loop on the same stack.
//!
//! Only code that runs with preemption enabled can be ended alone. With preemption disabled it holds a
//! lock or a half-changed queue of the kernel's own, and going on would spread the damage.

use core::ptr::NonNull;

use super::cores::Core;
use super::preempt;
use super::process::{Header, ProcessRef};
use crate::arch::irq;
use crate::mem::stack::StackBlock;

/// Why a process is being ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cause {
    /// It panicked.
    Panic,
    /// It did something that the machine refuses.
    Fault,
}

/// Whether a process runs here that can be ended alone.
pub fn can_end_current() -> bool {
    let block = StackBlock::current();
    block.preempt().is_enabled() && !block.process().is_null()
}

/// Ends the process that runs here, if it can be ended alone; otherwise returns, and the caller stops the
/// system.
///
/// # Safety
/// The code of the running process will not go on: the caller is the panic handler or the fault handler.
pub unsafe fn end_current(_cause: Cause) {
    let block = StackBlock::current();
    if !block.preempt().is_enabled() {
        return;
    }
    irq::disable();
    block.preempt().reset(1);
    let Some(process) = NonNull::new(block.take_process().cast::<Header>()) else { return };
    // SAFETY: preemption is disabled by the reset above, and a process runs, so the scheduler does.
    let core = unsafe { Core::this() };
    core.statistics.crashes.bump();
    // SAFETY: the process ran here until now, so its reference is alive.
    let header = unsafe { process.as_ref() };
    let resident = header.vtable().detach.is_some();
    if !resident {
        // Before whoever joins it is told, who may rely on it at once: its mailbox is closed from here on.
        header.turns().finish_crashed();
    }
    // SAFETY: the turn has ended, by contract.
    unsafe { (header.vtable().crash)(process) };
    if resident {
        // The resident itself lives on; only the piece it was carrying out has crashed.
        core.handover.set([None, Some(process)]);
    } else {
        super::spawn::note_end(header);
        // SAFETY: the scheduler's reference, which ends with the process.
        drop(unsafe { ProcessRef::from_counted(process) });
    }
    // SAFETY: nothing on this stack is used again, by contract.
    unsafe { preempt::abandon_turn() }
}
