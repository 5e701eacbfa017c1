//! Zeroing much memory: a block of 64 bytes, on most machines, for two instructions, in place of eight bytes.

use core::arch::asm;
use core::ptr::NonNull;

/// How many are zeroed in one round of the loop.
const BLOCKS: usize = 16;

/// Fills memory with values that are all zeros, which `_zero` would make.
///
/// # Safety
/// So many of them from `first` on are ordinary memory, mapped, and used for nothing else; the caches are on. Zeros are a
/// `T`.
pub unsafe fn fill<T>(first: NonNull<T>, count: usize, _zero: impl Fn() -> T) {
    // SAFETY: by contract.
    unsafe { zero(first.cast(), count * size_of::<T>()) };
}

/// # Safety
/// As for [`fill`], by bytes.
unsafe fn zero(first: NonNull<u8>, bytes: usize) {
    let kind: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, dczid_el0", out(reg) kind, options(pure, nomem, nostack, preserves_flags)) };
    // DZP: the instruction is forbidden. BS: the logarithm of a block's 32-bit words.
    let (forbidden, block_bytes) = (kind & 1 << 4 != 0, 4_usize << (kind & 0xf));
    let before = first.as_ptr().align_offset(block_bytes).min(bytes);
    let blocks = if forbidden { 0 } else { (bytes - before) / block_bytes };
    let done = before + blocks * block_bytes;
    // SAFETY: all of it lies within the caller's bytes. A block is zeroed as if by stores, in order with other accesses to
    // it.
    unsafe {
        first.write_bytes(0, before);
        asm!(
            "cbz {rounds}, 3f",
            "2:",
            ".rept {unrolled}",
            "dc zva, {at}",
            "add {at}, {at}, {block}",
            ".endr",
            "sub {rounds}, {rounds}, #1",
            "cbnz {rounds}, 2b",
            "3:",
            "cbz {left}, 5f",
            "4:",
            "dc zva, {at}",
            "add {at}, {at}, {block}",
            "sub {left}, {left}, #1",
            "cbnz {left}, 4b",
            "5:",
            unrolled = const BLOCKS,
            at = inout(reg) first.add(before).as_ptr() => _,
            rounds = inout(reg) blocks / BLOCKS => _,
            left = inout(reg) blocks % BLOCKS => _,
            block = in(reg) block_bytes,
            options(nostack, preserves_flags)
        );
        first.add(done).write_bytes(0, bytes - done);
    }
}
