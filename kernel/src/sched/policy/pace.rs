//! How often a core balances, and how much difference it asks for.
//!
//! Every 10 ms, 5 when more waits than there are cores, 50 when nothing waits anywhere, and after every few spawns and
//! exits. The interval and the load difference it asks for adapt to its success, after the seed's rule: above 80 % it
//! looks more often and asks for less, below 20 % the reverse, each within bounds, in between it goes back towards the
//! settings.

use core::cell::Cell;

use crate::sched::policy::settings::{self, Setting};

/// Attempts after which the success rate is judged.
const JUDGED_ATTEMPTS: u32 = 16;
/// Spawns and exits on one core after which it looks at once.
const EVENTS: u32 = 64;
/// The interval and the threshold are scaled by this many hundredths; 100 is neutral.
const LEAST_SCALE: u64 = 50;
const MOST_SCALE: u64 = 200;

/// A core's own pace; touched by its loop only.
pub(crate) struct Pace {
    next: Cell<u64>,
    attempts: Cell<u32>,
    successes: Cell<u32>,
    scale: Cell<u64>,
    events: Cell<u32>,
}

impl Pace {
    pub(crate) fn new() -> Self {
        Self {
            next: Cell::new(0),
            attempts: Cell::new(0),
            successes: Cell::new(0),
            scale: Cell::new(100),
            events: Cell::new(0),
        }
    }

    /// When it looks next, in clock ticks.
    pub(crate) fn next(&self) -> u64 {
        self.next.get()
    }

    /// It looks now, while this many processes wait on this many cores. Sets when it looks next.
    pub(crate) fn begin(&self, now: u64, waiting: u64, cores: u64) {
        let interval = match waiting {
            0 => Setting::BalanceQuietMicroseconds,
            waiting if waiting > cores => Setting::BalanceLoadedMicroseconds,
            _ => Setting::BalanceMicroseconds,
        };
        self.next.set(now + settings::ticks(interval) * self.scale.get() / 100);
    }

    /// How the interval and the load difference are scaled now, in hundredths.
    pub(crate) fn scale(&self) -> u64 {
        self.scale.get()
    }

    /// A process was spawned or has ended here.
    pub(crate) fn note_event(&self) {
        let events = self.events.get() + 1;
        self.events.set(events % EVENTS);
        if events == EVENTS {
            self.next.set(0);
        }
    }

    /// An attempt to balance was made.
    pub(crate) fn judge(&self, success: bool) {
        let attempts = self.attempts.get() + 1;
        let successes = self.successes.get() + u32::from(success);
        if attempts < JUDGED_ATTEMPTS {
            self.attempts.set(attempts);
            self.successes.set(successes);
            return;
        }
        self.attempts.set(0);
        self.successes.set(0);
        self.scale.set(adapted(self.scale.get(), successes * 100 / attempts));
    }
}

/// The scale after a success rate in per cent.
fn adapted(scale: u64, rate: u32) -> u64 {
    let towards_neutral =
        if scale > 100 { (scale - scale / 10).max(100) } else { (scale + scale / 10).min(100) };
    match rate {
        81.. => (scale - scale / 5).max(LEAST_SCALE),
        20..=80 => towards_neutral,
        _ => (scale + scale / 4).min(MOST_SCALE),
    }
}

#[cfg(test)]
mod tests {
    use super::{LEAST_SCALE, MOST_SCALE, adapted};

    #[test]
    fn success_makes_it_look_more_often_and_failure_less_often() {
        assert!(adapted(100, 81) < 100);
        assert!(adapted(100, 19) > 100);
        assert_eq!(adapted(100, 50), 100);
    }

    #[test]
    fn it_returns_to_neutral_and_stays_in_bounds() {
        let mut scale = 100;
        for _ in 0..50 {
            scale = adapted(scale, 0);
        }
        assert_eq!(scale, MOST_SCALE);
        for _ in 0..50 {
            scale = adapted(scale, 50);
        }
        assert_eq!(scale, 100);
        for _ in 0..50 {
            scale = adapted(scale, 100);
        }
        assert_eq!(scale, LEAST_SCALE);
    }
}
