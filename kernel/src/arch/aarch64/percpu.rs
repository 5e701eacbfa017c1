//! The two words that tell running code where it is: the core's block and the stack's block.

use core::hint;
use core::num::NonZeroUsize;

use aarch64_cpu::registers::{TPIDR_EL1, Writeable};

use crate::arch::MAX_CORES;

/// Sets this core's block pointer.
///
/// # Safety
/// `block` is what every user of [`core_block`] expects, and lives as long as the core runs.
pub unsafe fn set_core_block(block: *mut ()) {
    TPIDR_EL1.set(block as u64);
}

/// This core's block, or null before [`set_core_block`]. Valid only while preemption is disabled.
#[inline(always)]
pub fn core_block() -> *mut () {
    let block: *mut ();
    // SAFETY: reads a register. Not `pure`: after a turn the same code may be on another core. Not `nomem`:
    // the read must not move before the store that disables preemption.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el1", out(reg) block, options(nostack, preserves_flags, readonly))
    };
    block
}

/// Sets the block of the stack that runs.
///
/// # Safety
/// `block` points to at least a preemption word and an account word, exclusively this stack's.
#[allow(dead_code, reason = "the first instructions set it; here for one interface with the host")]
pub unsafe fn set_stack_block(block: *mut ()) {
    // SAFETY: no code runs at EL0, so TPIDR_EL0 is a plain register.
    unsafe { core::arch::asm!("msr tpidr_el0, {}", in(reg) block, options(nostack, preserves_flags)) };
}

/// The block of the stack that the caller runs on; never null once the core's boot has set it.
#[inline(always)]
pub fn stack_block() -> *mut () {
    let block: *mut ();
    // SAFETY: reads a register. `pure`: the value belongs to the stack, so within one activation of a
    // function it is the same, wherever that runs.
    unsafe {
        core::arch::asm!("mrs {}, tpidr_el0", out(reg) block, options(pure, nomem, nostack, preserves_flags))
    };
    block
}

/// What stands for this core where a lock says who holds it: its block. Valid only while preemption is disabled. Cores that the scheduler
/// does not run on yet are not told apart.
#[inline(always)]
pub fn holder() -> NonZeroUsize {
    NonZeroUsize::MIN | core_block().addr()
}

/// The number of this core, or 0 before the scheduler runs on it. Valid only while preemption is disabled.
///
/// By convention a core's block begins with its number.
#[inline(always)]
pub fn core_number() -> usize {
    let block = core_block().cast::<u64>();
    if block.is_null() {
        return 0;
    }
    // SAFETY: the block was set by the scheduler, and its first word is the core's number.
    unsafe { number_in(block) }
}

/// The number of this core, if the scheduler runs on it. Valid only while preemption is disabled.
#[inline(always)]
pub fn core_number_if_any() -> Option<usize> {
    let block = core_block().cast::<u64>();
    // SAFETY: as in `core_number`.
    (!block.is_null()).then(|| unsafe { number_in(block) })
}

/// # Safety
/// A core's block.
#[inline(always)]
unsafe fn number_in(block: *const u64) -> usize {
    // SAFETY: by contract, so it begins with a core's number; so tables with a place for each core need no look at their length.
    unsafe {
        let number = block.read() as usize;
        hint::assert_unchecked(number < MAX_CORES);
        number
    }
}
