//! Changing stacks: leaving one with its code suspended, starting on a fresh one, coming back.

use core::arch::{asm, naked_asm};

pub use super::frame::Frame;

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
            "msr sp_el0, {block}",
            "mov sp, {top}",
            // The end of the chain of frames.
            "mov x29, xzr",
            "mov x30, xzr",
            "br {entry}",
            block = in(reg) block,
            top = in(reg) top,
            entry = in(reg) entry,
            in("x0") arg,
            options(noreturn)
        )
    }
}

/// Switches to the stack of `frame`, calls `after(arg)` there, and continues the suspended code.
///
/// # Safety
/// `frame` was saved by an exception on the stack of `block`, and nobody else continues it. Interrupts are
/// masked. Nothing of the current stack is needed any more.
pub unsafe fn resume(frame: *mut Frame, block: *mut (), after: extern "C" fn(usize), arg: usize) -> ! {
    // SAFETY: by contract. The space under the frame is free stack.
    unsafe {
        asm!(
            "msr sp_el0, {block}",
            "mov sp, {frame}",
            "blr {after}",
            "b magpie_restore",
            block = in(reg) block,
            frame = in(reg) frame,
            after = in(reg) after,
            in("x0") arg,
            options(noreturn)
        )
    }
}

/// Enters the preemption handler as an interrupt would; the caller may continue later, on another core.
#[unsafe(naked)]
pub extern "C" fn preempt_trap() {
    naked_asm!("svc #0", "ret")
}
