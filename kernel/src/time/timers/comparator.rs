//! The hardware's comparator: each core has one, and it is armed here only.
//!
//! A core may want to be interrupted for three reasons: its slice ends, it looks again at what waits, a timer of its queue
//! is due. Each is a moment; the comparator is armed for the earliest.

use crate::arch::{clock, timer};

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

/// Whether a moment has not come. If so the comparator is armed for it once more, because what interrupted before may have armed it for something else.
/// In what a turn is asked when it is interrupted, so it is interrupted then. `u64::MAX` never comes.
#[cold]
#[inline(never)]
pub(crate) fn arm_if_ahead(at: u64) -> bool {
    let is_ahead = clock::now() < at;
    if is_ahead && at != u64::MAX {
        timer::arm_if_earlier(at);
    }
    is_ahead
}
