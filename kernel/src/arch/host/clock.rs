//! The clock: nanoseconds since the first call. Under shuttle, which decides every choice by a seed, it is the
//! simulation's own clock, or the seed would not decide.

#[cfg(not(shuttle))]
use std::sync::OnceLock;
#[cfg(not(shuttle))]
use std::time::Instant;

/// What the clock shows at its first use.
pub const ZERO: u64 = 0;

/// Ticks since some moment before the first use; never goes back.
#[cfg(not(shuttle))]
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// The simulation's time: reading the clock advances it a little, and when every core sleeps it advances to the first
/// timer.
#[cfg(shuttle)]
static SIMULATED: core::sync::atomic::AtomicU64 = core::sync::atomic::AtomicU64::new(1);

/// Ticks since some moment before the first use; never goes back.
#[cfg(shuttle)]
pub fn now() -> u64 {
    const LOOK_NANOSECONDS: u64 = 200;
    SIMULATED.fetch_add(LOOK_NANOSECONDS, core::sync::atomic::Ordering::Relaxed)
}

/// Every core sleeps: time advances to `deadline`.
#[cfg(shuttle)]
pub(super) fn advance_to(deadline: u64) {
    SIMULATED.fetch_max(deadline, core::sync::atomic::Ordering::Relaxed);
}

/// Ticks a second.
pub fn frequency() -> u64 {
    1_000_000_000
}
