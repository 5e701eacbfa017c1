//! Two words side by side, each atomic by itself, read or written at once where the machine can. Relaxed: nothing is ordered by it, and another
//! core may see one of the two without the other.
//!
//! `arch/aarch64/pair.rs` has the same functions with one instruction each.

use core::ptr::NonNull;

use crate::arch::atomic::{AtomicPtr, AtomicU64, Ordering};

/// Reads both of a pair that lies so many bytes behind `base`.
///
/// # Safety
/// One does, and stays valid during the call.
#[inline(always)]
pub unsafe fn load<const OFFSET: usize>(base: *const u8) -> [u64; 2] {
    // SAFETY: by contract.
    let pair = unsafe { &*base.add(OFFSET).cast::<[AtomicU64; 2]>() };
    [pair[0].load(Ordering::Relaxed), pair[1].load(Ordering::Relaxed)]
}

/// Writes both; likewise.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub unsafe fn store<const OFFSET: usize>(base: *const u8, [first, second]: [u64; 2]) {
    // SAFETY: by contract.
    let pair = unsafe { &*base.add(OFFSET).cast::<[AtomicU64; 2]>() };
    pair[0].store(first, Ordering::Relaxed);
    pair[1].store(second, Ordering::Relaxed);
}

/// Reads two pointers that lie so many bytes behind `base`, and writes two null pointers there.
///
/// # Safety
/// As for [`load`].
#[inline(always)]
pub unsafe fn take_pointers<const OFFSET: usize, T>(base: *const u8) -> [*mut T; 2] {
    // SAFETY: by contract.
    let pair = unsafe { &*base.add(OFFSET).cast::<[AtomicPtr<T>; 2]>() };
    let taken = [pair[0].load(Ordering::Relaxed), pair[1].load(Ordering::Relaxed)];
    pair.iter().for_each(|pointer| pointer.store(core::ptr::null_mut(), Ordering::Relaxed));
    taken
}

/// Overwrites two words with zeros.
///
/// # Safety
/// There are two at `base`, aligned, and nobody else uses them.
#[inline(always)]
pub unsafe fn zero(base: NonNull<u8>) {
    // SAFETY: by contract.
    unsafe { base.cast::<[u64; 2]>().write([0; 2]) };
}
