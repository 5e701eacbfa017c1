//! Processes that end because memory ran out. They come in crowds, so the first is reported, the second, the fourth,
//! the eighth, and so on, and in the end how many there were. Other panics are not counted here, because each may have
//! a cause of its own.

use core::panic::Location;
use core::sync::atomic::{AtomicU32, Ordering};

/// How many have ended like this.
pub(crate) struct Exhaustion(AtomicU32);

impl Exhaustion {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// Counts one more. Returns its number if it is to be reported.
    pub(crate) fn note(&self) -> Option<u32> {
        // Relaxed: a count.
        let number = self.0.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        number.is_power_of_two().then_some(number)
    }

    /// How many there were, if not each of them was reported.
    pub(crate) fn unsaid(&self) -> Option<u32> {
        // Relaxed: as above.
        Some(self.0.load(Ordering::Relaxed)).filter(|number| *number > 2)
    }
}

/// Whether a panic at this place comes from the `alloc` library, which panics when an allocation fails that cannot be
/// refused.
pub(crate) fn is_at(location: Option<&Location<'_>>) -> bool {
    location.is_some_and(|at| at.file().ends_with("library/alloc/src/alloc.rs"))
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{Exhaustion, is_at};
    use core::panic::Location;
    use std::vec::Vec;

    #[test]
    fn a_crowd_is_counted() {
        let exhaustion = Exhaustion::new();
        let said: Vec<_> = (0..33).filter_map(|_| exhaustion.note()).collect();
        assert_eq!(said, [1, 2, 4, 8, 16, 32]);
        assert_eq!(exhaustion.unsaid(), Some(33));
    }

    #[test]
    fn what_was_said_is_not_said_again() {
        let exhaustion = Exhaustion::new();
        assert_eq!(exhaustion.unsaid(), None);
        assert_eq!((exhaustion.note(), exhaustion.note(), exhaustion.unsaid()), (Some(1), Some(2), None));
    }

    #[test]
    fn other_panics_are_not_meant() {
        assert!(!is_at(Some(Location::caller())) && !is_at(None));
    }
}
