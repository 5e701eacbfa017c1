//! Barriers.

use aarch64_cpu::asm::barrier;

/// A full barrier among the cores: every access before it is seen before every access after it.
///
/// A store that must be seen before a *later load* needs this, and nothing weaker, on both sides.
#[inline(always)]
pub fn full() {
    barrier::dmb(barrier::ISH);
}
