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
//! How long it is, is a setting: `sched.lead_us`. It is shorter where the moment is near: a core gives up at most an eighth of the time until then, so that who
//! sleeps for moments only does not keep it from all others.

use crate::arch::clock;

/// What part of the time until its moment a timer's lead is at most: one in so many.
const PART: u64 = 8;

/// The tick for which a timer is armed that is for `moment`.
#[inline(always)]
pub(crate) fn armed_for(moment: u64, lead: u64) -> u64 {
    if lead == 0 {
        return moment;
    }
    let left = moment.saturating_sub(clock::now());
    moment - lead.min(left / PART)
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
