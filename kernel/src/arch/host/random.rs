//! The host has no instruction for random numbers that all its kinds share.

/// None.
pub const fn bits() -> Option<u64> {
    None
}
