//! Whether somebody may watch: what an end looks at, so that one that nobody watches takes no lock.

use crate::arch::atomic::{AtomicBool, Ordering};
use crate::arch::barrier;

/// For one process, or for all actors of a chunk. Never taken back.
///
/// Who watches puts the watch into its list, says so here, and then looks whether the watched one lives. Who ends says that it
/// has ended, and then looks here. Between the two steps of both is a full barrier: so either the one that ends sees this and
/// looks through the list, or the one that watches sees that it is too late, and takes its watch out again; or both, and then the
/// list's lock decides who has it.
pub struct Watched(AtomicBool);

impl Watched {
    /// Nobody watches.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Nobody watches.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// A watch is in its list. What is looked at after this says whether the watched one has ended.
    pub fn note(&self) {
        // Relaxed: the barrier orders it.
        self.0.store(true, Ordering::Relaxed);
        // Pairs with the one in `after_end`.
        barrier::full();
    }

    /// What came before this says that it has ended. Whether there may be watches.
    #[inline(always)]
    pub fn after_end(&self) -> bool {
        // Pairs with the one in `note`.
        barrier::full();
        // Relaxed: the barrier orders it.
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for Watched {
    fn default() -> Self {
        Self::new()
    }
}
