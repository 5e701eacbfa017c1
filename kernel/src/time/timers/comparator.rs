//! The hardware's comparator: each core has one, and it is armed here only.
//!
//! A core may want to be interrupted for three reasons: its slice ends, it looks again at what waits, a timer of its queue
//! is due. Each is a moment; the comparator is armed for the earliest.

use crate::arch::timer;

/// Arms it for the earliest of these moments; for nothing if there is none. The next timer of the core's queue belongs to
/// them.
pub(crate) fn arm(moments: impl Iterator<Item = u64>) {
    match moments.min() {
        Some(at) => timer::arm(at),
        None => timer::disarm(),
    }
}

/// Arms it for `at`, unless it is armed for an earlier moment.
#[inline]
pub(crate) fn arm_if_earlier(at: u64) {
    timer::arm_if_earlier(at);
}
