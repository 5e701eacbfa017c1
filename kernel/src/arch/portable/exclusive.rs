//! Compare-and-swap in the two strengths that the primitives need.

use crate::arch::atomic::{AtomicPtr, AtomicU64, Ordering};

#[cfg(feature = "forced-failure")]
use crate::arch::forced_failure::due;

#[cfg(not(feature = "forced-failure"))]
#[inline(always)]
const fn due() -> bool {
    false
}

/// One attempt, as one LDXR/STXR pair makes it: may fail although the value was the expected one.
#[inline(always)]
pub fn once_u64(cell: &AtomicU64, expected: u64, new: u64, success: Ordering) -> bool {
    // Relaxed on failure, here and below: the callers use nothing that a failure tells them.
    !due() && cell.compare_exchange_weak(expected, new, success, Ordering::Relaxed).is_ok()
}

/// As [`once_u64`], for a pointer.
#[inline(always)]
pub fn once_ptr<T>(cell: &AtomicPtr<T>, expected: *mut T, new: *mut T, success: Ordering) -> bool {
    !due() && cell.compare_exchange_weak(expected, new, success, Ordering::Relaxed).is_ok()
}

/// Attempts until the exchange is done or the value is another: false means the value was another.
#[inline(always)]
pub fn decided_u64(cell: &AtomicU64, expected: u64, new: u64, success: Ordering) -> bool {
    // A forced failure is one turn of the loop that `compare_exchange` stands for.
    while due() {}
    cell.compare_exchange(expected, new, success, Ordering::Relaxed).is_ok()
}
