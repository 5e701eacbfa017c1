//! One counter, one summary of sizes or times, and one histogram.
//!
//! With the feature `uncounted` they count nothing and take no instructions; readers find zeros.

use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::pair;

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
// In this order, as `record_time_at` says.
#[repr(C)]
pub struct Summary {
    /// How many, and their sum.
    both: [AtomicU64; 2],
    largest: AtomicU64,
}

impl Summary {
    pub(super) const fn new() -> Self {
        Self { both: [const { AtomicU64::new(0) }; 2], largest: AtomicU64::new(0) }
    }

    /// Adds a value. Only the summary's own core does this, with preemption disabled.
    #[inline(always)]
    pub(crate) fn record(&self, value: u64) {
        if cfg!(feature = "uncounted") {
            return;
        }
        // Relaxed: as for a counter.
        if value > self.largest.load(Ordering::Relaxed) {
            self.largest.store(value, Ordering::Relaxed);
        }
        let [count, sum] = &self.both;
        count.store(count.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        sum.store(sum.load(Ordering::Relaxed).wrapping_add(value), Ordering::Relaxed);
    }

    /// Adds the time from one moment to another, or none if that seems to be before: the clock of two processors may differ by a little. The summary
    /// lies so many bytes behind `base`. As [`Self::record`].
    ///
    /// # Safety
    /// It does, and stays valid during the call.
    #[inline(always)]
    pub(super) unsafe fn record_time_at<const OFFSET: usize>(base: *const u8, began: u64, now: u64) {
        if cfg!(feature = "uncounted") {
            return;
        }
        // SAFETY: by contract.
        let summary = unsafe { &*base.add(OFFSET).cast::<Self>() };
        let time = now.wrapping_sub(began);
        // SAFETY: by contract; the pair comes first.
        unsafe {
            let [count, sum] = pair::load::<OFFSET>(base);
            pair::store::<OFFSET>(base, [count.wrapping_add(1), sum.wrapping_add(time)]);
        }
        // Relaxed: as for a counter.
        if time > summary.largest.load(Ordering::Relaxed) {
            summary.note_unusual(time);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_unusual(&self, time: u64) {
        if (time as i64) < 0 {
            // It counts as no time.
            let sum = &self.both[1];
            return sum.store(sum.load(Ordering::Relaxed).wrapping_sub(time), Ordering::Relaxed);
        }
        self.largest.store(time, Ordering::Relaxed);
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.both[0].load(Ordering::Relaxed)
    }

    /// Their sum.
    pub fn sum(&self) -> u64 {
        self.both[1].load(Ordering::Relaxed)
    }

    /// The mean, rounded down; 0 if there was no value.
    pub fn mean(&self) -> u64 {
        self.sum().checked_div(self.count()).unwrap_or(0)
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
