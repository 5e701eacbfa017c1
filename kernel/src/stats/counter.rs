//! One counter, one summary of sizes or times, and one histogram.
//!
//! With the feature `uncounted` they count nothing and take no instructions; readers find zeros.

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
    pub(crate) fn bump(&self) {
        self.add(1);
    }

    /// Counts `more`. Only the counter's own core does this, with preemption disabled.
    #[inline(always)]
    pub(crate) fn add(&self, more: u64) {
        if !cfg!(feature = "uncounted") {
            self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
        }
    }

    /// Raises it to `value`, if it is lower. Only the counter's own core does this, with preemption disabled.
    #[inline(always)]
    pub(crate) fn raise(&self, value: u64) {
        if !cfg!(feature = "uncounted") && value > self.0.load(Ordering::Relaxed) {
            self.0.store(value, Ordering::Relaxed);
        }
    }

    /// The count.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// How many values there were, their sum and the largest.
pub struct Summary {
    count: Counter,
    sum: Counter,
    largest: AtomicU64,
}

impl Summary {
    pub(super) const fn new() -> Self {
        Self { count: Counter::new(), sum: Counter::new(), largest: AtomicU64::new(0) }
    }

    /// Adds a value. Only the summary's own core does this, with preemption disabled.
    #[inline(always)]
    pub(crate) fn record(&self, value: u64) {
        self.count.bump();
        self.sum.add(value);
        // Relaxed: as for a counter.
        if !cfg!(feature = "uncounted") && value > self.largest.load(Ordering::Relaxed) {
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

/// How often a size fell between one power of two and the next.
pub struct Histogram {
    buckets: [Counter; Self::BUCKETS],
}

impl Histogram {
    /// Buckets: 0, 1, 2 to 3, 4 to 7, and so on; the last takes everything above.
    pub const BUCKETS: usize = 16;

    pub(super) const fn new() -> Self {
        Self { buckets: [const { Counter::new() }; Self::BUCKETS] }
    }

    /// Counts a size. Only the histogram's own core does this, with preemption disabled.
    #[inline(always)]
    pub(crate) fn record(&self, size: u32) {
        self.record_many(size, 1);
    }

    /// Counts a size this many times; as [`Self::record`].
    #[inline(always)]
    pub(crate) fn record_many(&self, size: u32, times: u64) {
        self.buckets[((u32::BITS - size.leading_zeros()) as usize).min(Self::BUCKETS - 1)].add(times);
    }

    /// How many sizes fell into each bucket.
    pub fn counts(&self) -> [u64; Self::BUCKETS] {
        core::array::from_fn(|bucket| self.buckets[bucket].get())
    }

    /// The smallest size of a bucket.
    pub const fn least(bucket: usize) -> u64 {
        if bucket == 0 { 0 } else { 1 << (bucket - 1) }
    }
}

#[cfg(all(test, not(feature = "uncounted")))]
mod tests {
    use super::{Counter, Histogram, Summary};

    #[test]
    fn counters_count() {
        let counter = Counter::new();
        counter.bump();
        counter.add(4);
        assert_eq!(counter.get(), 5);
    }

    #[test]
    fn a_summary_knows_mean_and_largest() {
        let summary = Summary::new();
        assert_eq!((summary.mean(), summary.largest()), (0, 0));
        summary.record(2);
        summary.record(7);
        assert_eq!((summary.mean(), summary.largest()), (4, 7));
    }

    #[test]
    fn a_histogram_sorts_by_powers_of_two() {
        let histogram = Histogram::new();
        for size in [0, 1, 2, 3, 4, 7, 8, u32::MAX] {
            histogram.record(size);
        }
        assert_eq!(histogram.counts()[..5], [1, 1, 2, 2, 1]);
        assert_eq!(histogram.counts()[Histogram::BUCKETS - 1], 1, "everything above goes into the last");
        assert_eq!((Histogram::least(0), Histogram::least(1), Histogram::least(4)), (0, 1, 8));
    }
}
