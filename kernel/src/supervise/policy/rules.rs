//! The rules that a supervisor is given.

use core::time::Duration;

use crate::random::Random;

/// Who is started anew when a child has ended and is to be restarted. It decides nothing for those that are `Temporary`: they are
/// stopped with others, and never restarted.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Strategy {
    /// That child alone.
    OneForOne,
    /// All children: the others are stopped, the last first, and then all are started in order.
    OneForAll,
    /// That child and those after it: these are stopped, the last first, and then all of them are started in order.
    RestForOne,
}

/// Which ends of a child are followed by a restart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Restart {
    /// Each.
    #[default]
    Permanent,
    /// A failure: a crash, an error that the child returned, a kill.
    Transient,
    /// None. The supervisor forgets a child that has ended.
    Temporary,
}

/// How long a child that has failed waits for its restart: each time twice as long, up to a ceiling, less a random part, so that
/// those who failed together do not come back together.
///
/// ```
/// use core::time::Duration;
/// use magpie::supervise::{Backoff, Child, Supervisor};
///
/// // 10 to 20 ms, 20 to 40, 40 to 80, and so on up to 500 to 1000; from the beginning for one that has run for a minute.
/// let backoff = Backoff::new(Duration::from_millis(20), Duration::from_secs(1))
///     .jitter_percent(50)
///     .reset_after(Duration::from_secs(60));
/// let supervisor = Supervisor::one_for_one().backoff(backoff);
/// # let _ = supervisor;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backoff {
    first: Duration,
    ceiling: Duration,
    jitter_percent: u32,
    reset_after: Duration,
}

impl Backoff {
    /// Restarts at once.
    pub const NONE: Self = Self::new(Duration::ZERO, Duration::ZERO);

    /// From `first` up to `ceiling`, with a jitter of 50 %, from the beginning for a child that has run for ten times the ceiling.
    #[must_use]
    pub const fn new(first: Duration, ceiling: Duration) -> Self {
        Self { first, ceiling, jitter_percent: 50, reset_after: ceiling.saturating_mul(10) }
    }

    /// How much of a delay is random: it is shorter by up to so many percent, at most 100.
    #[must_use]
    pub const fn jitter_percent(self, percent: u32) -> Self {
        Self { jitter_percent: if percent > 100 { 100 } else { percent }, ..self }
    }

    /// How long a child must have run for its next delay to be the first again.
    #[must_use]
    pub const fn reset_after(self, healthy: Duration) -> Self {
        Self { reset_after: healthy, ..self }
    }

    /// How long a child must have run to begin from the first delay.
    pub(super) fn healthy(&self) -> Duration {
        self.reset_after
    }

    /// The longest delay of one that has failed so often before.
    pub(super) fn whole(&self, failures: u32) -> Duration {
        if self.first.is_zero() {
            return Duration::ZERO;
        }
        let doubled =
            1_u32.checked_shl(failures).map_or(Duration::MAX, |factor| self.first.saturating_mul(factor));
        doubled.min(self.ceiling)
    }

    /// The delay of one that has failed so often before.
    pub(super) fn delay(&self, failures: u32, random: &Random) -> Duration {
        let whole = self.whole(failures);
        if whole.is_zero() {
            return whole;
        }
        // In nanoseconds, of which a word holds 584 years.
        let nanoseconds = u64::try_from(whole.as_nanos()).unwrap_or(u64::MAX);
        let most = u128::from(nanoseconds) * u128::from(self.jitter_percent) / 100;
        let range = usize::try_from(most).unwrap_or(usize::MAX).saturating_add(1);
        whole.saturating_sub(Duration::from_nanos(random.below(range) as u64))
    }
}

impl Default for Backoff {
    /// From 1 ms up to a second; from the beginning after ten.
    fn default() -> Self {
        Self::new(Duration::from_millis(1), Duration::from_secs(1))
    }
}

/// All of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rules {
    pub strategy: Strategy,
    /// With more restarts than this within the window it gives up.
    pub most: usize,
    pub window: Duration,
    pub backoff: Backoff,
}
