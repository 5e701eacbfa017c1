//! How often in a row turns were given out of order. How often they may be is a setting, read where one is chosen.

use core::cell::Cell;

/// Turns one after another that have passed over others, in one word: those from the run-next slot, and those of `Normal`
/// while `Low` waited.
pub(super) struct Streaks(Cell<u64>);

/// A streak from the run-next slot is not counted beyond this, which is more than the setting may be.
pub(super) const MOST_STREAK: u64 = 1 << 20;

impl Streaks {
    pub(super) const fn new() -> Self {
        Self(Cell::new(0))
    }

    pub(super) fn next(&self) -> u64 {
        self.0.get() & u64::from(u32::MAX)
    }

    pub(super) fn normal(&self) -> u64 {
        self.0.get() >> 32
    }

    pub(super) fn set(&self, next: u64, normal: u64) {
        // Neither comes near 2^32: they are bounded by `MOST_STREAK` and by a setting.
        self.0.set(next | normal << 32);
    }
}
