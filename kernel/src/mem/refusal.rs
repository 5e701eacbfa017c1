//! Allocations that are refused at random, on demand: for tests of what happens then. Only with the feature `checks`; without it
//! nothing of this is compiled.
//!
//! Which allocations those are is drawn from a seed and their number, counted over all cores.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::random::Random;

/// One allocation in so many is refused; 0: none.
static ONE_IN: AtomicU32 = AtomicU32::new(0);
static SEED: AtomicU64 = AtomicU64::new(0);
static ATTEMPTS: AtomicU64 = AtomicU64::new(0);
static REFUSED: AtomicU64 = AtomicU64::new(0);

/// Has the heap refuse about one allocation in so many, everybody's; 0 ends it. Returns how many were refused so far.
pub fn refuse_one_in(many: u32, seed: u64) -> u64 {
    // Relaxed, here and below: test bookkeeping, which orders nothing.
    SEED.store(seed, Ordering::Relaxed);
    ONE_IN.store(many, Ordering::Relaxed);
    REFUSED.load(Ordering::Relaxed)
}

/// Whether the allocation that comes next is to be refused.
#[inline]
pub(super) fn is_due() -> bool {
    let many = ONE_IN.load(Ordering::Relaxed);
    many != 0 && is_drawn(many)
}

#[cold]
fn is_drawn(many: u32) -> bool {
    let number = ATTEMPTS.fetch_add(1, Ordering::Relaxed) as usize;
    let random = Random::new(SEED.load(Ordering::Relaxed), number);
    // The first number of a sequence is much like that of its neighbours.
    random.bits();
    random.bits();
    let is_drawn = random.below(many as usize) == 0;
    REFUSED.fetch_add(u64::from(is_drawn), Ordering::Relaxed);
    is_drawn
}
