//! Moments of the machine's clock.

use core::ops::{Add, Sub};
use core::time::Duration;

use crate::arch::clock;

const NANOSECONDS_PER_SECOND: u64 = 1_000_000_000;

/// A moment, in ticks of the clock that all cores share.
///
/// ```
/// use core::time::Duration;
/// use magpie::time::Instant;
///
/// let begin = Instant::now();
/// let deadline = begin + Duration::from_secs(3600);
/// assert_eq!(deadline - begin, Duration::from_secs(3600));
/// assert!(begin.elapsed() < Duration::from_secs(3600));
/// assert_eq!(deadline.elapsed(), Duration::ZERO);
/// assert!(deadline.ticks() > begin.ticks());
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Instant(u64);

impl Instant {
    /// This moment.
    pub fn now() -> Self {
        Self(clock::now())
    }

    /// The moment at which the clock shows so many ticks.
    pub(crate) const fn at_tick(ticks: u64) -> Self {
        Self(ticks)
    }

    /// In clock ticks.
    pub fn ticks(self) -> u64 {
        self.0
    }

    /// How long ago it was; zero if it is still to come.
    pub fn elapsed(self) -> Duration {
        Self::now() - self
    }
}

/// A duration as clock ticks, rounded up; as many as fit if it is longer than the clock can count.
pub(crate) fn ticks(duration: Duration) -> u64 {
    // In words, as below.
    let frequency = clock::frequency();
    let rest = u64::from(duration.subsec_nanos()).saturating_mul(frequency).div_ceil(NANOSECONDS_PER_SECOND);
    duration.as_secs().saturating_mul(frequency).saturating_add(rest)
}

/// How long so many clock ticks are, as statistics count them; rounded down to a nanosecond.
///
/// ```
/// # use core::time::Duration;
/// use magpie::{stats, time};
///
/// let longest = time::of_ticks(stats::collections().longest_ticks);
/// assert!(longest < Duration::from_secs(1));
/// ```
pub fn of_ticks(ticks: u64) -> Duration {
    // In words: a division of more is a call, and dear. No clock ticks more often than 2^34 times a second, so nothing overflows.
    let frequency = clock::frequency().max(1);
    let (seconds, rest) = (ticks / frequency, ticks % frequency);
    Duration::new(seconds, (rest.saturating_mul(NANOSECONDS_PER_SECOND) / frequency) as u32)
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(ticks(duration)))
    }
}

impl Sub for Instant {
    type Output = Duration;

    fn sub(self, earlier: Self) -> Duration {
        of_ticks(self.0.saturating_sub(earlier.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{Instant, of_ticks, ticks};
    use core::time::Duration;

    #[test]
    fn a_duration_is_as_long_in_ticks() {
        for duration in [Duration::ZERO, Duration::from_micros(1), Duration::from_secs(3_000_000)] {
            assert_eq!(of_ticks(ticks(duration)), duration);
        }
        assert_eq!(of_ticks(u64::MAX), Duration::from_nanos(u64::MAX));
    }

    #[test]
    fn adding_and_subtracting_agree() {
        let begin = Instant::now();
        let later = begin + Duration::from_millis(5);
        assert_eq!(later - begin, Duration::from_millis(5));
        assert_eq!(begin - later, Duration::ZERO);
        assert!(begin + Duration::MAX > later);
    }
}
