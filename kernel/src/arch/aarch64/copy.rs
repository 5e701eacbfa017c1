//! Copying and filling memory: the `memcpy` and `memset` that the compiler calls, by pairs of registers.
//! And moving a value out of where it lies without a call (`take`), where its size is known.
//!
//! The target's own are made for a machine that takes no unaligned access, and copy a word at a time: 54 instructions for
//! 64 bytes, and nearly three for each byte where the two sides are aligned differently. These take 64 bytes in a round of six
//! instructions, and then halves: 32, 16, 8, 4, 2, 1.
//!
//! Before the MMU is on, memory counts as Device memory, which faults where an access is not aligned to the size of its
//! registers. After that all memory that is copied is Normal memory, which takes every access (`SCTLR_EL1.A` is clear). So
//! whoever copies more than a rest of a round, or what is not aligned to 8, looks first; with the MMU off, copies go by
//! words if both sides are aligned to 8, and by bytes if not. Nothing copies from or to registers of devices like this.
//!
//! The vectors save all registers, those of floating point included, and put them back: so a copy may be interrupted
//! anywhere, and handlers may copy. `memmove` and `memcmp` are the target's.

use core::arch::aarch64::uint8x16_t;
use core::arch::{asm, naked_asm};
use core::mem::MaybeUninit;

/// Moves a value out of where it lies, as `read` does, without a call where it is long: 64 bytes by three instructions. One that consists of
/// parts of words comes in whole words, which the compiler need not put together again where it is handed on.
///
/// # Safety
/// As for `read`, after the MMU is on; and the memory is aligned to words of eight bytes, and fit to be read as far as whole words go.
#[inline(always)]
pub unsafe fn take<T>(from: *const T) -> T {
    /// So that registers are stored as a whole, and what is behind a value, up to a whole word, has room.
    #[repr(C, align(16))]
    struct Place<T>(MaybeUninit<T>);
    if const { align_of::<T>() > 16 } {
        // SAFETY: by contract.
        return unsafe { from.read() };
    }
    let bytes = const { size_of::<T>().next_multiple_of(8) };
    let mut place = Place::<T>(MaybeUninit::uninit());
    if const { size_of::<T>() <= LEFT_TO_THE_COMPILER_BYTES } {
        if const { align_of::<T>() >= 8 || size_of::<T>() <= 4 } {
            // SAFETY: by contract.
            return unsafe { from.read() };
        }
        let (to, from) = (place.0.as_mut_ptr().cast::<MaybeUninit<u64>>(), from.cast::<MaybeUninit<u64>>());
        // SAFETY: by contract, and the place has room for so many whole words. Not in a loop, which would be taken for a copy in parts.
        return unsafe {
            to.write(from.read());
            if bytes > 8 {
                to.add(1).write(from.add(1).read());
            }
            if bytes > 16 {
                to.add(2).write(from.add(2).read());
            }
            if bytes > 24 {
                to.add(3).write(from.add(3).read());
            }
            place.0.assume_init()
        };
    }
    let (mut to, mut from) = (place.0.as_mut_ptr().cast::<uint8x16_t>(), from);
    // SAFETY: by contract, and the place has room for so many whole words. By assembly, because the compiler splits loads that may not
    // be aligned. What it makes of the stores is its own affair: it may keep in registers what is looked at.
    unsafe {
        for _ in 0..bytes / 64 {
            let (a, b, c, d): (uint8x16_t, uint8x16_t, uint8x16_t, uint8x16_t);
            asm!(
                "ld1 {{v0.16b, v1.16b, v2.16b, v3.16b}}, [{from}], #64", from = inout(reg) from,
                out("v0") a, out("v1") b, out("v2") c, out("v3") d,
                options(pure, readonly, nostack, preserves_flags),
            );
            to.cast::<[uint8x16_t; 4]>().write([a, b, c, d]);
            to = to.add(4);
        }
        if bytes & 32 != 0 {
            let (a, b): (uint8x16_t, uint8x16_t);
            asm!(
                "ld1 {{v0.16b, v1.16b}}, [{from}], #32", from = inout(reg) from, out("v0") a, out("v1") b,
                options(pure, readonly, nostack, preserves_flags),
            );
            to.cast::<[uint8x16_t; 2]>().write([a, b]);
            to = to.add(2);
        }
        if bytes & 16 != 0 {
            let a: uint8x16_t;
            asm!(
                "ld1 {{v0.16b}}, [{from}], #16", from = inout(reg) from, out("v0") a,
                options(pure, readonly, nostack, preserves_flags),
            );
            to.write(a);
            to = to.add(1);
        }
        if bytes & 8 != 0 {
            let a: u64;
            asm!(
                "ldr {a}, [{from}]", from = in(reg) from, a = lateout(reg) a,
                options(pure, readonly, nostack, preserves_flags),
            );
            to.cast::<u64>().write(a);
        }
        place.0.assume_init()
    }
}

/// Up to so many bytes the compiler copies by itself without a call.
const LEFT_TO_THE_COMPILER_BYTES: usize = 32;

/// Copies `bytes` from `from` to `to`, and returns `to`.
///
/// # Safety
/// C's: the two sides do not overlap, and are fit to be read and written.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memcpy(to: *mut u8, from: *const u8, bytes: usize) -> *mut u8 {
    naked_asm!(
        "mov x3, x0",
        "cmp x2, #64",
        "b.lo 6f",
        "mrs x4, sctlr_el1",
        "tbz x4, #0, 7f",
        "sub x2, x2, #64",
        "1:",
        "ldp q0, q1, [x1], #64",
        "ldp q2, q3, [x1, #-32]",
        "stp q0, q1, [x3], #64",
        "stp q2, q3, [x3, #-32]",
        "subs x2, x2, #64",
        "b.hs 1b",
        // The rest: the six lowest bits are still its own. Each half of it is aligned to its size where all is aligned
        // to 8.
        "2:",
        "tst x2, #63",
        "b.eq 5f",
        "tbz x2, #5, 3f",
        "ldp x4, x5, [x1], #32",
        "ldp x6, x7, [x1, #-16]",
        "stp x4, x5, [x3], #32",
        "stp x6, x7, [x3, #-16]",
        "3:",
        "tbz x2, #4, 3f",
        "ldp x4, x5, [x1], #16",
        "stp x4, x5, [x3], #16",
        "3:",
        "tbz x2, #3, 3f",
        "ldr x4, [x1], #8",
        "str x4, [x3], #8",
        "3:",
        "tst x2, #7",
        "b.eq 5f",
        "tbz x2, #2, 3f",
        "ldr w4, [x1], #4",
        "str w4, [x3], #4",
        "3:",
        "tbz x2, #1, 3f",
        "ldrh w4, [x1], #2",
        "strh w4, [x3], #2",
        "3:",
        "tbz x2, #0, 5f",
        "ldrb w4, [x1]",
        "strb w4, [x3]",
        "5:",
        "ret",
        // Less than a round.
        "6:",
        "orr x4, x0, x1",
        "tst x4, #7",
        "b.eq 2b",
        "mrs x4, sctlr_el1",
        "tbnz x4, #0, 2b",
        // The MMU is off.
        "7:",
        "orr x4, x0, x1",
        "tst x4, #7",
        "b.ne 9f",
        "8:",
        "cmp x2, #8",
        "b.lo 9f",
        "ldr x4, [x1], #8",
        "str x4, [x3], #8",
        "sub x2, x2, #8",
        "b 8b",
        "9:",
        "cbz x2, 5b",
        "ldrb w4, [x1], #1",
        "strb w4, [x3], #1",
        "sub x2, x2, #1",
        "b 9b",
    )
}

/// Fills `bytes` at `to` with the lowest byte of `byte`, and returns `to`.
///
/// # Safety
/// C's: the memory is fit to be written.
#[unsafe(no_mangle)]
#[unsafe(naked)]
unsafe extern "C" fn memset(to: *mut u8, byte: i32, bytes: usize) -> *mut u8 {
    naked_asm!(
        "and x1, x1, #0xff",
        "mov x3, #0x0101010101010101",
        "mul x1, x1, x3",
        "mov x3, x0",
        "cmp x2, #64",
        "b.lo 6f",
        "mrs x4, sctlr_el1",
        "tbz x4, #0, 7f",
        "dup v0.2d, x1",
        "sub x2, x2, #64",
        "1:",
        "stp q0, q0, [x3], #64",
        "stp q0, q0, [x3, #-32]",
        "subs x2, x2, #64",
        "b.hs 1b",
        // The rest, as above.
        "2:",
        "tst x2, #63",
        "b.eq 5f",
        "tbz x2, #5, 3f",
        "stp x1, x1, [x3], #32",
        "stp x1, x1, [x3, #-16]",
        "3:",
        "tbz x2, #4, 3f",
        "stp x1, x1, [x3], #16",
        "3:",
        "tbz x2, #3, 3f",
        "str x1, [x3], #8",
        "3:",
        "tst x2, #7",
        "b.eq 5f",
        "tbz x2, #2, 3f",
        "str w1, [x3], #4",
        "3:",
        "tbz x2, #1, 3f",
        "strh w1, [x3], #2",
        "3:",
        "tbz x2, #0, 5f",
        "strb w1, [x3]",
        "5:",
        "ret",
        // Less than a round.
        "6:",
        "tst x0, #7",
        "b.eq 2b",
        "mrs x4, sctlr_el1",
        "tbnz x4, #0, 2b",
        // The MMU is off.
        "7:",
        "tst x0, #7",
        "b.ne 9f",
        "8:",
        "cmp x2, #8",
        "b.lo 9f",
        "str x1, [x3], #8",
        "sub x2, x2, #8",
        "b 8b",
        "9:",
        "cbz x2, 5b",
        "strb w1, [x3], #1",
        "sub x2, x2, #1",
        "b 9b",
    )
}
