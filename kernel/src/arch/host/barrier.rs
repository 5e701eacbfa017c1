//! Barriers, as fences of the language.

use crate::arch::atomic::{Ordering, fence};

/// A full barrier: every access before it is seen before every access after it (DMB ISH on Arm).
///
/// A store that must be seen before a *later load* needs this, and nothing weaker, on both sides.
#[inline(always)]
pub fn full() {
    fence(Ordering::SeqCst);
}
