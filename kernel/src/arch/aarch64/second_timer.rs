//! Each core's other timer, the physical one. Nobody in the kernel uses it: for a benchmark it is a device that interrupts at a moment
//! that is known beforehand, and takes the way of any device's interrupt.

use super::clock;
use aarch64_cpu::registers::{CNTP_CTL_EL0, CNTP_CVAL_EL0, Writeable};

/// Its interrupt on each core: the number that Arm's Base System Architecture gives it, which boards follow.
pub const INTERRUPT: u32 = 30;

/// Arms this core's for `moment` in clock ticks. The two counters show the same, because boot sets their difference to zero.
pub fn arm(moment: u64) {
    CNTP_CVAL_EL0.set(moment.saturating_sub(clock::ZERO));
    CNTP_CTL_EL0.write(CNTP_CTL_EL0::ENABLE::SET + CNTP_CTL_EL0::IMASK::CLEAR);
}

/// Disarms this core's: it interrupts until then.
pub fn disarm() {
    CNTP_CTL_EL0.write(CNTP_CTL_EL0::ENABLE::CLEAR);
}
