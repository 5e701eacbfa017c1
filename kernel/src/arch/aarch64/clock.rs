//! The clock: the virtual counter, which every core reads the same.

use aarch64_cpu::registers::{CNTFRQ_EL0, CNTVCT_EL0, Readable};

/// Ticks since some moment before boot; never goes back.
#[inline(always)]
pub fn now() -> u64 {
    CNTVCT_EL0.get()
}

/// Ticks a second, as the firmware set it.
#[inline(always)]
pub fn frequency() -> u64 {
    CNTFRQ_EL0.get()
}
