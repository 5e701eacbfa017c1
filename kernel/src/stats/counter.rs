//! One counter, and one tally of sizes or times.

use crate::arch::atomic::{AtomicU64, Ordering};

/// A number that its core counts up.
///
/// Relaxed throughout: one core writes, so a load and a store lose nothing; readers get a recent value.
pub struct Counter(AtomicU64);

impl Counter {
    pub(super) const fn new() -> Self {
        Self(AtomicU64::new(0))
    }

    /// Counts one. Only the counter's own core does this, with preemption disabled.
    #[inline(always)]
    pub fn bump(&self) {
        self.add(1);
    }

    /// Counts `more`. Only the counter's own core does this, with preemption disabled.
    #[inline(always)]
    pub fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many values there were, their sum and the largest.
pub struct Tally {
    count: Counter,
    sum: Counter,
    largest: AtomicU64,
}

impl Tally {
    pub(super) const fn new() -> Self {
        Self { count: Counter::new(), sum: Counter::new(), largest: AtomicU64::new(0) }
    }

    /// Adds a value. Only the tally's own core does this, with preemption disabled.
    #[inline(always)]
    pub fn record(&self, value: u64) {
        self.count.bump();
        self.sum.add(value);
        // Relaxed: as for a counter.
        if value > self.largest.load(Ordering::Relaxed) {
            self.largest.store(value, Ordering::Relaxed);
        }
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count.get()
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.sum.get()
    }

    /// The mean, rounded down; 0 if there was no value.
    pub fn mean(&self) -> u64 {
        self.sum.get().checked_div(self.count.get()).unwrap_or(0)
    }

    /// The largest.
    pub fn largest(&self) -> u64 {
        self.largest.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Counter, Tally};

    #[test]
    fn counters_count() {
        let counter = Counter::new();
        counter.bump();
        counter.add(4);
        assert_eq!(counter.get(), 5);
    }

    #[test]
    fn a_tally_knows_mean_and_largest() {
        let tally = Tally::new();
        assert_eq!((tally.mean(), tally.largest()), (0, 0));
        tally.record(2);
        tally.record(7);
        assert_eq!((tally.mean(), tally.largest()), (4, 7));
    }
}
