//! The hardware's comparator: each core has one, and it is armed here only.
//!
//! A core may want to be interrupted for three reasons: its slice ends, it looks again at what waits, a timer of its wheel
//! is due. Each is a moment; the comparator is armed for the earliest.

use super::timers;
use crate::arch::{CoreId, timer};

/// Arms it for `own`, or for the next timer in the wheel of `core`, which is the caller's, whichever is earlier; for
/// nothing if there is neither.
pub(crate) fn arm(core: CoreId, own: Option<u64>) {
    match own.into_iter().chain(timers::next_deadline(core)).min() {
        Some(at) => timer::arm(at),
        None => timer::disarm(),
    }
}

/// Arms it for `at`, unless it is armed for an earlier moment.
#[inline]
pub(crate) fn arm_if_earlier(at: u64) {
    timer::arm_if_earlier(at);
}
