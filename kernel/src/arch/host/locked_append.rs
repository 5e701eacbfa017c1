//! Appending to a locked queue without a preemption guard: not on the host, where threads are preempted without our knowing.

use super::append::Words;
use crate::arch::atomic::AtomicU64;

/// Never does.
///
/// # Safety
/// As on the machine.
#[inline(always)]
pub unsafe fn append<const N: usize>(_queue: *const (), _words: &Words, _only_if: (&AtomicU64, u64)) -> bool {
    false
}
