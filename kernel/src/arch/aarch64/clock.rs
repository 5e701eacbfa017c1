//! The clock: the virtual counter, which every core reads the same.

use aarch64_cpu::registers::{CNTFRQ_EL0, CNTVCT_EL0, Readable};

/// What the clock shows while the counter is zero. A moment must not look like an address: to a collection of what crashes left
/// (`mem::orphans`) a number that does would seem to be a pointer. The lower 48 bits count there, and no memory lies
/// so high. It holds for a month after the start at 62.5 MHz.
pub const ZERO: u64 = 1 << 47;

/// Ticks since some moment before boot; never goes back.
#[inline(always)]
pub fn now() -> u64 {
    let zero: u64;
    // SAFETY: it names a constant. The compiler, if it knew that, would keep it in a register of the core's loop, of which there are too few.
    unsafe {
        core::arch::asm!("mov {}, {}", out(reg) zero, const ZERO, options(nomem, nostack, preserves_flags));
    }
    CNTVCT_EL0.get().wrapping_add(zero)
}

/// Ticks a second, as the firmware set it.
#[inline(always)]
pub fn frequency() -> u64 {
    CNTFRQ_EL0.get()
}
