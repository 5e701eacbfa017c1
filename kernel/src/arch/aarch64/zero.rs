//! Zeroing much memory: 32 bytes for an instruction.
//!
//! Not by `dc zva`, which takes as many instructions for 64 bytes. The emulator asks at each of those whether it is allowed, by a search in a
//! table, and that takes a fifth of the time in which a long backlog is sent (`fork-join`).

use core::arch::asm;
use core::ptr::NonNull;

/// Bytes that one instruction zeroes.
const STEP: usize = 32;
/// How many are zeroed in one round of the loop.
const STEPS: usize = 16;

/// Fills memory with values that are all zeros, which `_zero` would make.
///
/// # Safety
/// So many of them from `first` on are ordinary memory, mapped, and used for nothing else. Zeros are a `T`.
pub unsafe fn fill<T>(first: NonNull<T>, count: usize, _zero: impl Fn() -> T) {
    // SAFETY: by contract.
    unsafe { zero(first.cast(), count * size_of::<T>()) };
}

/// # Safety
/// As for [`fill`], by bytes.
unsafe fn zero(first: NonNull<u8>, bytes: usize) {
    let before = first.as_ptr().align_offset(STEP).min(bytes);
    let steps = (bytes - before) / STEP;
    let done = before + steps * STEP;
    // SAFETY: all of it lies within the caller's bytes, and each step is aligned.
    unsafe {
        first.write_bytes(0, before);
        asm!(
            "movi v0.2d, #0",
            "cbz {rounds}, 3f",
            "2:",
            ".rept {unrolled}",
            "stp q0, q0, [{at}], #{step}",
            ".endr",
            "sub {rounds}, {rounds}, #1",
            "cbnz {rounds}, 2b",
            "3:",
            "cbz {left}, 5f",
            "4:",
            "stp q0, q0, [{at}], #{step}",
            "sub {left}, {left}, #1",
            "cbnz {left}, 4b",
            "5:",
            unrolled = const STEPS,
            step = const STEP,
            at = inout(reg) first.add(before).as_ptr() => _,
            rounds = inout(reg) steps / STEPS => _,
            left = inout(reg) steps % STEPS => _,
            out("v0") _,
            options(nostack, preserves_flags)
        );
        first.add(done).write_bytes(0, bytes - done);
    }
}
