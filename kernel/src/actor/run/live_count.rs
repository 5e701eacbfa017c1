//! Counting those that live, and finding out that none does, without a counter that everybody writes.
//!
//! Each core counts what began and what ended there, in counters that only grow and that it alone writes. Whoever wants
//! to know whether none is left adds up the ends *first* and the beginnings afterwards. If the two are equal, then at the
//! moment between the two additions as many had ended as had begun: beginnings counted by then were no more than were
//! added up later, and ends no fewer than were added up before. So zero is never seen while one lives. It may of course
//! be seen before the first has begun.
//!
//! Who waits for zero says so, passes a full barrier and looks; who counts an end passes a full barrier and asks whether
//! anybody waits. One of the two sees the other.

use crate::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::arch::barrier;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::hint;

#[repr(align(64))]
struct OneCore {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// The count of those that live.
pub struct LiveCount {
    cores: Box<[OneCore]>,
    somebody_waits: AtomicBool,
}

fn add(counter: &AtomicU64, number: u64) {
    // Relaxed: this core is the only one that writes. Release: pairs with the acquire in `sum`: whoever sees
    // an end sees the beginnings that were counted before it.
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Release);
}

impl LiveCount {
    /// For so many cores; `None` without memory.
    pub fn new(cores: usize) -> Option<Self> {
        let mut list = Vec::new();
        list.try_reserve_exact(cores).ok()?;
        list.extend((0..cores).map(|_| OneCore { begun: AtomicU64::new(0), ended: AtomicU64::new(0) }));
        Some(Self { cores: list.into_boxed_slice(), somebody_waits: AtomicBool::new(false) })
    }

    /// The counters of a core.
    #[inline(always)]
    fn on(&self, core: usize) -> &OneCore {
        // Most often it is one of those that this is for, and nothing is divided.
        self.cores.get(core).unwrap_or_else(|| {
            hint::cold_path();
            &self.cores[core % self.cores.len()]
        })
    }

    /// One begins, on this core.
    #[inline(always)]
    pub fn begin(&self, core: usize) {
        add(&self.on(core).begun, 1);
    }

    /// So many have ended, on this core. Whether somebody waits who must be told that none is left.
    #[inline(always)]
    pub fn end(&self, core: usize, number: u64) -> bool {
        add(&self.on(core).ended, number);
        // Pairs with the barrier in `wait`: either the waiter sees the end, or this sees the waiter.
        barrier::full();
        self.somebody_waits.load(Ordering::Relaxed) && self.is_none()
    }

    /// Somebody waits from here on. Whether that is not needed, for none is left.
    pub fn wait(&self) -> bool {
        self.somebody_waits.store(true, Ordering::Relaxed);
        // Pairs with the barrier in `end`.
        barrier::full();
        self.is_none()
    }

    /// All who waited will be told.
    pub fn forget_waiters(&self) {
        self.somebody_waits.store(false, Ordering::Relaxed);
    }

    fn sum(&self, counter: impl Fn(&OneCore) -> &AtomicU64) -> u64 {
        // Acquire: the next counter is read after this one; pairs with `add`.
        self.cores.iter().map(|core| counter(core).load(Ordering::Acquire)).sum()
    }

    /// How many live; exact while none begins or ends.
    pub fn count(&self) -> u64 {
        let ended = self.sum(|core| &core.ended);
        self.sum(|core| &core.begun).saturating_sub(ended)
    }

    /// Whether none lives.
    pub fn is_none(&self) -> bool {
        self.count() == 0
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::LiveCount;

    #[test]
    fn ends_are_counted_against_beginnings_wherever_they_are() {
        let count = LiveCount::new(2).expect("memory");
        assert!(count.is_none());
        count.begin(0);
        count.begin(1);
        assert_eq!(count.count(), 2);
        assert!(!count.end(1, 1) && !count.wait());
        assert!(count.end(1, 1), "somebody waited");
        count.forget_waiters();
        count.begin(0);
        assert!(!count.end(0, 1), "nobody waits any more");
    }
}
