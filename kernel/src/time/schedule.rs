//! Moments at equal distances, without drift.
//!
//! A period need not be a whole number of clock ticks. So moments are kept in billionths of a tick, in which a nanosecond is
//! as many as the clock has ticks in a second; only what is asked for is rounded, up, so that nothing is early.

use core::time::Duration;

use super::instant::Instant;
use crate::arch::clock;

/// Parts of a tick.
const PARTS: u128 = 1_000_000_000;

/// Moments at equal distances, of which one is due next.
#[derive(Clone, Debug)]
pub(crate) struct Schedule {
    /// The end of the part in which the next moment lies: so cutting off what is not a whole tick rounds up.
    next: u128,
    period: u128,
}

impl Schedule {
    /// Moments from `first` on.
    ///
    /// # Panics
    /// If the period is zero.
    #[track_caller]
    pub(crate) fn new(first: Instant, period: Duration) -> Self {
        assert!(!period.is_zero(), "a period of zero has no next moment: it must be longer");
        let next = u128::from(first.ticks()) * PARTS + (PARTS - 1);
        Self { next, period: period.as_nanos() * u128::from(clock::frequency().max(1)) }
    }

    /// The moment that is due next; if the clock cannot count so far, the last that it can.
    pub(crate) fn due(&self) -> Instant {
        Instant::at_tick(u64::try_from(self.next / PARTS).unwrap_or(u64::MAX))
    }

    /// Goes on to the next moment, whether that has passed or not.
    pub(crate) fn advance(&mut self) {
        self.next = self.next.saturating_add(self.period);
    }

    /// Goes on to the first moment after `now`, at least to the next one. How many were left out.
    pub(crate) fn advance_beyond(&mut self, now: Instant) -> u64 {
        self.advance();
        let ahead = (u128::from(now.ticks()) + 1) * PARTS;
        if self.next >= ahead {
            return 0;
        }
        let left_out = (ahead - self.next).div_ceil(self.period);
        self.next = self.next.saturating_add(left_out.saturating_mul(self.period));
        u64::try_from(left_out).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::{Instant, Schedule};
    use crate::arch::clock;
    use core::time::Duration;

    /// However odd the period, the hundred thousandth moment is where a single multiplication says, rounded up to a tick.
    #[test]
    fn moments_do_not_drift() {
        let first = Instant::now();
        for period in [1, 7, 999, 1_000_003, 86_400_000_000_007].map(Duration::from_nanos) {
            let mut schedule = Schedule::new(first, period);
            for number in 0..100_000_u128 {
                let ticks =
                    (period.as_nanos() * number * u128::from(clock::frequency())).div_ceil(1_000_000_000);
                assert_eq!(
                    u128::from(schedule.due().ticks()),
                    u128::from(first.ticks()) + ticks,
                    "{number} of {period:?}"
                );
                schedule.advance();
            }
        }
    }

    #[test]
    fn what_was_missed_is_counted_and_the_next_lies_ahead() {
        let first = Instant::now();
        let period = Duration::from_nanos(1_000_003);
        for late in [Duration::ZERO, period / 2, period, period * 5 / 2, period * 1000] {
            let (mut one_by_one, mut at_once) = (Schedule::new(first, period), Schedule::new(first, period));
            let (now, mut missed) = (first + late, 0);
            one_by_one.advance();
            while one_by_one.due() <= now {
                one_by_one.advance();
                missed += 1;
            }
            assert_eq!(at_once.advance_beyond(now), missed, "left out when {late:?} late");
            assert_eq!(at_once.due(), one_by_one.due(), "the next when {late:?} late");
        }
        // Never early, so never behind: the next is one period on.
        let mut early = Schedule::new(first + period, period);
        assert_eq!(
            (early.advance_beyond(first), early.due()),
            (0, Schedule::new(first + period * 2, period).due())
        );
    }

    #[test]
    fn the_end_of_time_is_no_overflow() {
        let mut schedule = Schedule::new(Instant::now(), Duration::MAX);
        schedule.advance();
        assert_eq!(schedule.due().ticks(), u64::MAX);
        schedule.advance_beyond(schedule.due());
        assert_eq!(schedule.due().ticks(), u64::MAX);
    }
}
