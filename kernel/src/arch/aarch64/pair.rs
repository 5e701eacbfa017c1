//! Two words side by side, read or written by one instruction.
//!
//! The architecture has each of the two accessed by itself, atomically, in no order; so these are the relaxed accesses of
//! `arch/portable/pair.rs`, which the compiler does not put together.

use core::ptr::NonNull;

/// Reads both of a pair that lies so many bytes behind `base`, which is a part of the instruction.
///
/// # Safety
/// One does, and stays valid during the call.
#[inline(always)]
pub unsafe fn load<const OFFSET: usize>(base: *const u8) -> [u64; 2] {
    let (first, second);
    // SAFETY: by contract; each of the two accesses is single-copy atomic.
    unsafe {
        core::arch::asm!("ldp {}, {}, [{}, {}]", out(reg) first, out(reg) second, in(reg) base, const OFFSET,
            options(nostack, preserves_flags, readonly));
    }
    [first, second]
}

/// Writes both; likewise.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub unsafe fn store<const OFFSET: usize>(base: *const u8, [first, second]: [u64; 2]) {
    // SAFETY: as in `load`; atomics may be written through a pointer that came from a shared reference.
    unsafe {
        core::arch::asm!("stp {}, {}, [{}, {}]", in(reg) first, in(reg) second, in(reg) base, const OFFSET,
            options(nostack, preserves_flags));
    }
}

/// Reads two pointers that lie so many bytes behind `base`, and writes two null pointers there.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub unsafe fn take_pointers<const OFFSET: usize, T>(base: *const u8) -> [*mut T; 2] {
    let (first, second);
    // SAFETY: as in `store`.
    unsafe {
        core::arch::asm!("ldp {}, {}, [{base}, {offset}]", "stp xzr, xzr, [{base}, {offset}]", out(reg) first, out(reg) second,
            base = in(reg) base, offset = const OFFSET, options(nostack, preserves_flags));
    }
    [first, second]
}

/// Overwrites two words with zeros. Unlike a loop of writes, one of these stays what it is.
///
/// # Safety
/// There are two at `base`, aligned, and nobody else uses them.
#[inline(always)]
pub unsafe fn zero(base: NonNull<u8>) {
    // SAFETY: by contract.
    unsafe {
        core::arch::asm!("stp xzr, xzr, [{}]", in(reg) base.as_ptr(), options(nostack, preserves_flags))
    };
}
