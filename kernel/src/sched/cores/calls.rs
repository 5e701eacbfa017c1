//! Requests to all core loops: one word, which every loop reads when it is asked for attention. Who answers, and how, is in
//! `run/stop.rs`, `run/halt.rs` and `run/collect.rs`.

use super::block::Core;
use super::standstill::Standstill;

/// The loops end.
pub(crate) const STOP: u32 = 1;
/// Every core stands still for a moment.
#[cfg(target_os = "none")]
pub(crate) const HALT: u32 = 1 << 1;
/// One core looks for memory that only the dead could reach.
#[cfg(target_os = "none")]
pub(crate) const COLLECT: u32 = 1 << 2;

/// The calls.
pub(crate) static CALLS: Standstill = Standstill::new();

/// Calls for something, at every core's next round. A sleeping core is woken by the caller.
pub(crate) fn raise(call: u32) {
    CALLS.raise(call);
    tell_all();
}

/// After a call was raised: every core is to look at it.
pub(crate) fn tell_all() {
    super::all().for_each(Core::ask_attention);
}

/// What is called for.
#[inline(always)]
pub(crate) fn all() -> u32 {
    CALLS.calls()
}
