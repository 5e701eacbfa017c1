//! When a worker looks for what it could give away. It does not read the clock for each batch: it counts batches, and
//! learns how many fit between two looks.

use core::cell::Cell;

/// The most batches between two readings of the clock.
const MOST_BATCHES: u32 = 64;

/// When a worker looks again. Its own turn's.
pub(super) struct Pace {
    /// Batches until the clock is read again.
    left: Cell<u32>,
    /// As many as that were, the last time.
    batches: Cell<u32>,
    /// When it looked, in clock ticks.
    looked_at: Cell<u64>,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Self { left: Cell::new(1), batches: Cell::new(1), looked_at: Cell::new(0) }
    }

    /// A batch begins. Whether the clock must be read.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        let left = self.left.get() - 1;
        self.left.set(left);
        left == 0
    }

    /// The worker has just looked at all that is its own, and found nothing: its next batch begins without a look. Mail that comes from now on
    /// wakes it, and has waited for no longer than that takes.
    pub(super) fn found_nothing(&self) {
        self.left.set(self.left.get().max(2));
    }

    /// Whether to look at `now`, two looks being `apart`; in clock ticks.
    pub(super) fn looks(&self, now: u64, apart: u64) -> bool {
        let passed = now.saturating_sub(self.looked_at.get());
        let batches = u64::from(self.batches.get());
        let fitting = if passed < apart { batches * 2 } else { batches * apart / passed.max(1) };
        let fitting = fitting.clamp(1, u64::from(MOST_BATCHES)) as u32;
        self.batches.set(fitting);
        self.left.set(fitting);
        if passed < apart {
            return false;
        }
        self.looked_at.set(now);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_BATCHES, Pace};

    /// Batches until the next look, each taking `ticks`.
    fn batches_until_look(pace: &Pace, now: &mut u64, ticks: u64, apart: u64) -> u32 {
        for batch in 1..100_000 {
            *now += ticks;
            if pace.is_due() && pace.looks(*now, apart) {
                return batch;
            }
        }
        panic!("it never looks again");
    }

    #[test]
    fn the_batch_after_nothing_begins_without_a_look() {
        let pace = Pace::new();
        for now in (0..10).map(|round| round * 10_000) {
            pace.found_nothing();
            assert!(!pace.is_due(), "a look, right after it had looked");
            assert!(pace.is_due() && pace.looks(now + 5_000, 1_000), "no look at the second batch");
        }
    }

    #[test]
    fn it_looks_about_as_often_as_asked_whatever_batches_take() {
        for ticks in [1, 7, 100, 999, 5_000] {
            let (pace, mut now) = (Pace::new(), 0);
            // It learns first.
            batches_until_look(&pace, &mut now, ticks, 1_000);
            for _ in 0..10 {
                let before = now;
                batches_until_look(&pace, &mut now, ticks, 1_000);
                let most = 1_000 + ticks * u64::from(MOST_BATCHES).min(2_000 / ticks + 1);
                assert!((1_000..=most).contains(&(now - before)), "{ticks}: {}", now - before);
            }
        }
    }
}
