//! The lead: an urgent timer fires a little before its moment.
//!
//! From the interrupt to the first instruction of what it wakes a core executes hundreds of instructions. So it begins with them early, and
//! what is woken is there when its moment comes. Nothing of that is seen before the moment:
//!
//! - a future that waits for a moment sees that its timer has fired, and holds until the moment ([`hold_until`], `time/alarm.rs`). So wherever
//!   its process runs, and whoever polls it, it is never early. What else the process waits for it may look at a little earlier;
//! - a delayed call holds before it is carried out. Or it is carried out early, if none but this core can see what it does, and the core
//!   holds before it begins the turn in which it would: see `sched/spawn/early.rs`.
//!
//! How long it is, is a setting: `sched.lead_us`. Each urgent timer costs the core up to as much time.

use crate::arch::clock;

/// The tick for which a timer is armed that is for `moment`.
#[inline(always)]
pub(crate) fn armed_for(moment: u64, lead: u64) -> u64 {
    moment.saturating_sub(lead)
}

/// Whether `moment`, in clock ticks, has not come.
#[inline(always)]
pub(crate) fn is_ahead(moment: u64) -> bool {
    clock::now() < moment
}

/// Returns when `moment` has come, in clock ticks. It is no further away than the lead.
#[inline(always)]
pub(crate) fn hold_until(moment: u64) {
    while is_ahead(moment) {
        core::hint::spin_loop();
    }
}
