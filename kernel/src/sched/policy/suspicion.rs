//! When a core is taken to be stuck: rules over numbers. Who looks, and at what, is in `run/watchdog.rs`.
//!
//! What counts is not time but looks, one after another with a while between: if the whole machine was stopped for longer than the
//! limit (an emulator, a machine that slept), nobody looked meanwhile, and that is one look.

use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};

/// So many looks in a row without a sign of life, and a core is stuck.
pub(crate) const LOOKS: u32 = 4;

/// Slices between two looks at least: one that a short section happens to meet each time is no sign of death.
const LEAST_SLICES: u64 = 25;

/// The time between two looks, of these three: a core that makes no progress for the limit is noticed at most one of these later.
pub(crate) fn interval(limit: u64, slice: u64, most: u64) -> u64 {
    (limit / u64::from(LOOKS)).max(LEAST_SLICES * slice).min(most)
}

/// What one core has seen of another, or of itself.
///
/// Relaxed throughout: written and read by the core that looks.
pub(crate) struct Suspicion {
    sign: AtomicU64,
    looks: AtomicU32,
}

impl Suspicion {
    pub(crate) const fn new() -> Self {
        Self { sign: AtomicU64::new(0), looks: AtomicU32::new(0) }
    }

    /// Looks, and finds this sign of life, which is another one each time as long as there is life; or `None`, if there is nothing to
    /// suspect. Whether the core is stuck: said once, until it goes on.
    pub(crate) fn look(&self, sign: Option<u64>) -> bool {
        let before = self.sign.load(Ordering::Relaxed);
        if sign.is_none_or(|sign| sign != before) {
            self.sign.store(sign.unwrap_or(0), Ordering::Relaxed);
            self.looks.store(0, Ordering::Relaxed);
            return false;
        }
        let looks = self.looks.load(Ordering::Relaxed).saturating_add(1);
        self.looks.store(looks, Ordering::Relaxed);
        looks == LOOKS
    }

    /// Nothing could be done about it: it is to be said again at the next look.
    pub(crate) fn put_off(&self) {
        self.looks.store(LOOKS - 1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{LOOKS, Suspicion, interval};

    #[test]
    fn a_core_without_a_sign_of_life_is_stuck_once() {
        let seen = Suspicion::new();
        let stuck = |sign| seen.look(Some(sign));
        assert!(!stuck(7));
        let said = (0..3 * LOOKS).filter(|_| stuck(7)).count();
        assert_eq!(said, 1, "it is said once");
        assert!(!stuck(8));
        assert!((1..LOOKS).all(|_| !stuck(8)), "counted anew");
        assert!(stuck(8));
    }

    #[test]
    fn any_sign_of_life_counts() {
        let seen = Suspicion::new();
        for look in 0..100 {
            let sign = if look % LOOKS == 0 { None } else { Some(0) };
            assert!(!seen.look(sign), "look {look}");
        }
        assert!((1..100).all(|sign| !seen.look(Some(sign))));
    }

    #[test]
    fn what_could_not_be_said_is_said_later() {
        let seen = Suspicion::new();
        assert_eq!((0..LOOKS).filter(|_| seen.look(Some(0))).count(), 1);
        seen.put_off();
        assert!(seen.look(Some(0)));
        assert!(!seen.look(Some(0)));
    }

    #[test]
    fn looks_are_neither_too_dense_nor_too_rare() {
        assert_eq!(interval(4_000, 1, 7_000), 1_000);
        assert_eq!(interval(4, 2, 7_000), 50);
        assert_eq!(interval(30_000, 1_000, 7_000), 7_000);
    }
}
