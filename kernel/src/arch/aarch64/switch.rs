//! Changing stacks: leaving one with its code suspended, starting on a fresh one, coming back.

use core::arch::{asm, naked_asm};

pub use super::frame::Frame;
use super::percpu;
use crate::arch::stack_layout::{FAULT_STACK_BYTES, StackPart, place_in_slot};

/// Starts `entry(arg)` on a fresh stack and abandons the current one.
///
/// # Safety
/// `top` is the 16-byte aligned top of a stack that nobody uses, `block` that stack's block. What is on the
/// current stack is either suspended, with its frame saved, or never used again. Interrupts are masked, and
/// `entry` starts that way.
pub unsafe fn start_on(top: *mut u8, block: *mut (), entry: extern "C" fn(usize) -> !, arg: usize) -> ! {
    // SAFETY: by contract nothing of the current stack is needed any more.
    unsafe {
        asm!(
            "msr tpidr_el0, x1",
            "mov sp, x2",
            // What the abandoned code kept in registers must not seem to be in use: a search for pointers would find it
            // where the callee saves them.
            "mov x19, xzr",
            "mov x20, xzr",
            "mov x21, xzr",
            "mov x22, xzr",
            "mov x23, xzr",
            "mov x24, xzr",
            "mov x25, xzr",
            "mov x26, xzr",
            "mov x27, xzr",
            "mov x28, xzr",
            // The end of the chain of frames.
            "mov x29, xzr",
            "mov x30, xzr",
            "br x3",
            in("x1") block,
            in("x2") top,
            in("x3") entry,
            in("x0") arg,
            options(noreturn)
        )
    }
}

/// Calls `after(arg)` on the core's interrupt stack, on behalf of the stack of `block`, and continues the code that
/// is suspended there.
///
/// # Safety
/// `frame` holds the registers of the code that is suspended on the stack of `block`, and nobody else continues it.
/// Interrupts are masked. Nothing of the current stack is needed any more.
pub unsafe fn resume(frame: *mut Frame, block: *mut (), after: extern "C" fn(usize), arg: usize) -> ! {
    // SAFETY: by contract. With interrupts masked and no handler running, the interrupt stack is free.
    unsafe {
        asm!(
            "msr tpidr_el0, x2",
            // The inputs have other registers, so x4 is free.
            "mrs x4, sp_el0",
            "sub sp, x4, #{fault_bytes}",
            "blr x3",
            // Kept by `after`, as the calling convention has it.
            "mov x0, x20",
            "b magpie_restore",
            fault_bytes = const FAULT_STACK_BYTES,
            in("x2") block,
            in("x3") after,
            in("x20") frame,
            in("x0") arg,
            options(noreturn)
        )
    }
}

/// Enters the preemption handler as an interrupt would; the caller may continue later, on another core.
#[unsafe(naked)]
pub extern "C" fn preempt_trap() {
    naked_asm!("svc #{number}", "ret", number = const PREEMPT_CALL)
}

/// What marks the trap of [`preempt_trap`]: any other supervisor call is an undefined instruction here.
pub(super) const PREEMPT_CALL: u64 = 0x4d50;

/// Whether the caller runs on the stack whose block TPIDR_EL0 names, and not in a handler.
pub fn is_on_own_stack() -> bool {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mov {}, sp", out(reg) sp, options(nomem, nostack, preserves_flags)) };
    place_in_slot(percpu::stack_block() as usize, sp) == StackPart::Stack
}

/// The registers that a call leaves as they are: x19 to x28.
pub type KeptRegisters = [usize; 10];

/// Overwrites the stack from `lowest`, which is aligned to 16 bytes, to the end of the frame of the function that this is
/// part of.
///
/// # Safety
/// That part of the stack is mapped, and what is there is not used again.
#[inline(always)]
pub unsafe fn clear_stack_from(lowest: usize) {
    // SAFETY: the caller promised. Not by a call, whose own frame would lie there.
    unsafe {
        asm!(
            "mov {end}, sp",
            "2:",
            "cmp {at}, {end}",
            "b.hs 3f",
            "stp xzr, xzr, [{at}], #16",
            "b 2b",
            "3:",
            at = inout(reg) lowest => _,
            end = out(reg) _,
            options(nostack)
        )
    };
}

/// Writes down the registers that a call leaves as they are, so that what they hold is on the stack. Returns where the
/// caller's stack pointer is: together with what functions have saved of them at their beginning, all of them lie
/// between that and the top.
#[inline(always)]
pub fn save_registers(kept: &mut KeptRegisters) -> usize {
    let sp: usize;
    // SAFETY: writes the ten words of the array.
    unsafe {
        asm!(
            "stp x19, x20, [{kept}]",
            "stp x21, x22, [{kept}, #16]",
            "stp x23, x24, [{kept}, #32]",
            "stp x25, x26, [{kept}, #48]",
            "stp x27, x28, [{kept}, #64]",
            "mov {sp}, sp",
            kept = in(reg) kept.as_mut_ptr(),
            sp = lateout(reg) sp,
            options(nostack, preserves_flags)
        )
    };
    sp
}
