//! What all core loops are called for: one word, which every loop reads once in a round. Who answers, and how, is in
//! [`stop`](super::stop), [`halt`](super::halt) and [`collect`](super::collect).

use crate::sync::Standstill;

/// The loops end.
pub(super) const STOP: u32 = 1;
/// Every core stands still for a moment.
#[cfg(target_os = "none")]
pub(super) const HALT: u32 = 1 << 1;
/// One core looks for memory that only the dead could reach.
#[cfg(target_os = "none")]
pub(super) const COLLECT: u32 = 1 << 2;

/// The calls.
pub(super) static CALLS: Standstill = Standstill::new();

/// What is called for.
#[inline(always)]
pub(super) fn all() -> u32 {
    CALLS.calls()
}
