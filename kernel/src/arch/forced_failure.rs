//! Store-exclusives that fail on demand.
//!
//! An uncontended STXR fails now and then on a real core and never under QEMU, which implements it as a
//! compare-and-swap. With the feature `forced-failure` every `k`th exclusive store of the deque and of
//! the double swap fails, so that the paths behind a failure run in tests. In the assembly a CLREX between
//! LDXR and STXR makes the failure a real one. Without the feature nothing of this is compiled.

use core::sync::atomic::{AtomicU32, Ordering};

/// Every how many exclusive stores one fails; 0: none does.
static PERIOD: AtomicU32 = AtomicU32::new(0);
static ATTEMPTS: AtomicU32 = AtomicU32::new(0);
static FORCED: AtomicU32 = AtomicU32::new(0);

/// Makes every `period`th exclusive store fail; 0 ends it. A period of 1 would make every retry loop
/// endless, so it is taken as 2.
pub fn set_period(period: u32) {
    // Relaxed, here and below: test bookkeeping, which orders nothing.
    PERIOD.store(if period == 1 { 2 } else { period }, Ordering::Relaxed);
}

/// How many failures were forced so far (modulo 2^32).
pub fn forced() -> u32 {
    FORCED.load(Ordering::Relaxed)
}

/// Whether the exclusive store that comes next is to fail.
pub(super) fn due() -> bool {
    let period = PERIOD.load(Ordering::Relaxed);
    if period == 0 || !ATTEMPTS.fetch_add(1, Ordering::Relaxed).wrapping_add(1).is_multiple_of(period) {
        return false;
    }
    FORCED.fetch_add(1, Ordering::Relaxed);
    true
}
