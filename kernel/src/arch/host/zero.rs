//! Zeroing much memory.

use core::ptr::NonNull;

/// Fills memory with what `zero` makes: for the machine that is all zeros, but the atomics of a checker hold more.
///
/// # Safety
/// There is room for so many from `first` on, used for nothing else.
pub unsafe fn fill<T>(first: NonNull<T>, count: usize, zero: impl Fn() -> T) {
    for index in 0..count {
        // SAFETY: the caller promised room for that many.
        unsafe { first.add(index).write(zero()) };
    }
}
