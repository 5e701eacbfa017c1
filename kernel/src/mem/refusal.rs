//! Allocations that are refused on demand: for tests of what happens then. Only with the feature `checks`; without it
//! nothing of this is compiled.
//!
//! Either many at random, everybody's: which ones is drawn from a seed and their number, counted over all cores. Or exactly one of those
//! that a piece of code asks for, told from everybody else's by the stack that it runs on.

use core::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use crate::arch::percpu;
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

/// The block of the stack whose code is refused one; 0: nobody's.
static WHOSE: AtomicUsize = AtomicUsize::new(0);
/// So many are granted to it before that.
static GRANTED: AtomicU64 = AtomicU64::new(0);

/// Calls `what`, and has the heap refuse the allocation that it asks for after so many others. Returns with its result whether it came so far.
/// One at a time; if `what` does not return, the next call ends this.
pub fn refuse_one_after<R>(granted: u64, what: impl FnOnce() -> R) -> (R, bool) {
    GRANTED.store(granted, Ordering::Relaxed);
    WHOSE.store(percpu::stack_block().addr(), Ordering::Relaxed);
    let result = what();
    (result, WHOSE.swap(0, Ordering::Relaxed) == 0)
}

/// Whether the allocation that comes next is to be refused.
#[inline]
pub(super) fn is_due() -> bool {
    let many = ONE_IN.load(Ordering::Relaxed);
    many != 0 && is_drawn(many) || WHOSE.load(Ordering::Relaxed) != 0 && is_the_one()
}

#[cold]
fn is_the_one() -> bool {
    if WHOSE.load(Ordering::Relaxed) != percpu::stack_block().addr() {
        return false;
    }
    // Only code on that stack comes here, one after the other.
    match GRANTED.load(Ordering::Relaxed).checked_sub(1) {
        Some(granted) => GRANTED.store(granted, Ordering::Relaxed),
        None => WHOSE.store(0, Ordering::Relaxed),
    }
    WHOSE.load(Ordering::Relaxed) == 0
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
