//! Appending behind a gate without a preemption guard: not on the host, where threads are preempted without our knowing.

use core::mem::MaybeUninit;

use super::switch::Frame;
use crate::arch::atomic::AtomicU64;

/// As on the machine.
pub const MOST_WORDS: usize = 7;

/// Whether there are such sequences here.
pub const EXISTS: bool = false;

/// Room for the most words.
pub type Words = [MaybeUninit<u64>; MOST_WORDS];

/// Nothing is suspended.
pub fn restart(_frame: &mut Frame) {}

/// There is nothing to sort.
///
/// # Safety
/// As on the machine.
pub unsafe fn sort() {}

/// Never does.
///
/// # Safety
/// As on the machine.
#[inline(always)]
pub unsafe fn append<const N: usize, const AT: usize>(
    _base: *const (),
    _words: &Words,
    _only_if: (&AtomicU64, u64),
) -> bool {
    false
}

/// Never does.
///
/// # Safety
/// As on the machine.
#[inline(always)]
pub unsafe fn append_block<B, const AT: usize>(
    _base: *const (),
    _head: [u64; 3],
    _block: *const B,
    _only_if: (&AtomicU64, u64),
) -> bool {
    false
}
