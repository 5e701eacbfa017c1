//! How many thieves search: at most `thieves` at once.

use crate::arch::atomic::{AtomicU32, Ordering};

static SEARCHING: AtomicU32 = AtomicU32::new(0);

/// Whether thieves are searching; for producers that have made work visible and passed a full barrier.
pub(crate) fn are_searching() -> bool {
    // Relaxed: ordered by the caller's barrier; pairs with the thief's announcement after its search.
    SEARCHING.load(Ordering::Relaxed) != 0
}

/// The right to search.
pub(crate) struct Thief(());

impl Thief {
    /// The right, unless `limit` thieves search already.
    pub(crate) fn new(limit: u64) -> Option<Self> {
        // AcqRel: a count that limits; what orders searches against producers are the barriers in `idle`.
        if u64::from(SEARCHING.fetch_add(1, Ordering::AcqRel)) < limit {
            return Some(Self(()));
        }
        SEARCHING.fetch_sub(1, Ordering::AcqRel);
        None
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        // AcqRel: as in `new`.
        SEARCHING.fetch_sub(1, Ordering::AcqRel);
    }
}
