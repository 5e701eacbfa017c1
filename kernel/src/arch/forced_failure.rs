//! Store-exclusives that fail, and wake-up interrupts that come late, on demand.
//!
//! An uncontended STXR fails now and then on a real core and never under QEMU, which implements it as a
//! compare-and-swap. With the feature `forced-failure` every `k`th exclusive store of the deque and of
//! the double swap fails, so that the paths behind a failure run in tests. In the assembly a CLREX between
//! LDXR and STXR makes the failure a real one.
//!
//! A wake-up interrupt takes its time on a real machine, and may arrive when its core was woken by something else, has
//! worked, and sleeps again. QEMU delivers it at once. With the same feature the sender may linger before it sends, a
//! pseudo-random while each time. Without the feature nothing of this is compiled.

use core::sync::atomic::{AtomicU32, Ordering};

/// One exclusive store in this many fails; 0: none does.
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

/// How long a sender lingers at most, in turns of a loop; 0: it does not.
static LINGERING: AtomicU32 = AtomicU32::new(0);
static LINGERED: AtomicU32 = AtomicU32::new(0);

/// Makes wake-up interrupts late, by up to this many turns of an empty loop; 0 ends it.
pub fn set_lingering(most: u32) {
    LINGERING.store(most, Ordering::Relaxed);
}

/// How many wake-up interrupts were late so far (modulo 2^32).
pub fn lingered() -> u32 {
    LINGERED.load(Ordering::Relaxed)
}

/// The sender of a wake-up interrupt lingers, if that is asked for.
pub(super) fn linger() {
    let most = LINGERING.load(Ordering::Relaxed);
    if most == 0 {
        return;
    }
    // Knuth's multiplicative hash of the number of the interrupt: spread evenly, and the same in every run.
    let number = LINGERED.fetch_add(1, Ordering::Relaxed).wrapping_mul(2_654_435_769);
    for _ in 0..(u64::from(number) * u64::from(most)) >> 32 {
        core::hint::spin_loop();
    }
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
