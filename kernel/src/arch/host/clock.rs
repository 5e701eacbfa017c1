//! The clock: nanoseconds since the first call.

use std::sync::OnceLock;
use std::time::Instant;

/// Ticks since some moment before the first use; never goes back.
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

/// Ticks a second.
pub fn frequency() -> u64 {
    1_000_000_000
}
