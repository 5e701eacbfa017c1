//! The clock, in nanoseconds. Under shuttle, which decides every choice by a seed, it is the simulation's own clock, or the
//! seed would not decide.

/// Ticks since some moment before the first use; never goes back.
pub use super::world::now;

/// What the clock shows at its first use.
pub const ZERO: u64 = 0;

/// Ticks a second.
pub fn frequency() -> u64 {
    1_000_000_000
}
