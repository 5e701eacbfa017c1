//! The word of a mutex: who holds it, whether anybody waits, and whether its last holder has crashed.
//!
//! ```text
//!                 take                 a holder that is gone is found
//!   free ───────────────────▶ held ─────────────────────────────────────▶ poisoned, for ever
//!    ▲                        │  ▲
//!    ├── give: nobody waits ──┘  │ wait: under the lock of a list of waiters, in the hold in which the waiter is put there
//!    │                        │  │
//!    │   give: tell them      ▼  │
//!    └────────────────────── held, and waited for
//! ```
//!
//! A holder that gives it back and finds that somebody waits takes that list's lock afterwards. So either it finds the
//! waiter there, or the waiter finds the word free. A crash goes through the same list.
//!
//! A poisoned word is never free again: a holder that has crashed may have left a reference to the data anywhere.

use crate::arch::atomic::{AtomicU64, Ordering, const_fn};

const FREE: u64 = 0;
const POISONED: u64 = 1;
/// Set beside the holder while somebody waits.
const WAITED: u64 = 2;
/// The lowest bit of the holder.
const HOLDER_SHIFT: u32 = 2;

/// A holder, as the word names it: anything below 2^62, but 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Holder(u64);

impl Holder {
    /// By its number.
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// Its number.
    pub const fn number(self) -> u64 {
        self.0
    }
}

/// What came of an attempt.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Taken {
    /// The caller holds it.
    Yes,
    /// Somebody else does.
    Held,
    /// Nobody will ever hold it again.
    Poisoned,
}

/// The word.
pub struct LockWord(AtomicU64);

impl LockWord {
    const_fn! {
        /// Free.
        pub fn new() -> Self {
            Self(AtomicU64::new(FREE))
        }
    }

    /// Takes it for `holder`, if it is free. `is_gone` tells whether a holder will never give it back.
    pub fn take(&self, holder: Holder, is_gone: impl Fn(Holder) -> bool) -> Taken {
        let held = holder.0 << HOLDER_SHIFT;
        loop {
            // Acquire: pairs with the release in `give`, so the holder sees what the last one wrote. Relaxed on
            // failure: nothing was learned of the data.
            match self.0.compare_exchange(FREE, held, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Taken::Yes,
                Err(word) => match self.judge(word, &is_gone) {
                    Some(taken) => return taken,
                    None => continue,
                },
            }
        }
    }

    /// What it means to have found `word`, which is not free; `None` if it has changed meanwhile.
    fn judge(&self, word: u64, is_gone: &impl Fn(Holder) -> bool) -> Option<Taken> {
        if word == POISONED {
            return Some(Taken::Poisoned);
        }
        if !is_gone(Holder(word >> HOLDER_SHIFT)) {
            return Some(Taken::Held);
        }
        // Relaxed: nobody touches the data any more. The exchange makes sure that the crashed holder still holds it: it
        // may have given it back before it crashed.
        let poisoned = self.0.compare_exchange(word, POISONED, Ordering::Relaxed, Ordering::Relaxed);
        poisoned.is_ok().then_some(Taken::Poisoned)
    }

    /// Marks that somebody waits. Called under the lock of the list into which the waiter is then put; `false` if it
    /// must try again instead.
    pub fn wait(&self, is_gone: impl Fn(Holder) -> bool) -> bool {
        // Relaxed, here and below: the list's lock orders this with `give`, and nothing is learned of the data.
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word == FREE || self.judge(word, &is_gone) != Some(Taken::Held) {
                return false;
            }
            match self.0.compare_exchange(word, word | WAITED, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => return true,
                Err(other) => word = other,
            }
        }
    }

    /// The holder gives it back. Returns whether there is anybody to tell, through the list's lock.
    #[must_use = "who waits must be told"]
    pub fn give(&self) -> bool {
        // Relaxed: it says who holds it, which is the caller, or that the caller is considered gone.
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word == POISONED {
                return false;
            }
            // Release: pairs with the acquire in `take`.
            match self.0.compare_exchange(word, FREE, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return word & WAITED != 0,
                // Somebody has begun to wait.
                Err(other) => word = other,
            }
        }
    }

    /// Whether nobody will ever hold it again, as far as is known.
    pub fn is_poisoned(&self, is_gone: impl Fn(Holder) -> bool) -> bool {
        // Relaxed: nothing is learned of the data.
        let word = self.0.load(Ordering::Relaxed);
        word != FREE && self.judge(word, &is_gone) == Some(Taken::Poisoned)
    }
}

impl Default for LockWord {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Holder, LockWord, Taken};

    const ONE: Holder = Holder::new(1);
    const OTHER: Holder = Holder::new(u64::MAX >> 2);

    fn nobody(_: Holder) -> bool {
        false
    }

    #[test]
    fn one_holds_it_at_a_time() {
        let word = LockWord::new();
        assert_eq!(word.take(OTHER, nobody), Taken::Yes);
        assert_eq!(word.take(ONE, nobody), Taken::Held);
        assert!(!word.give(), "nobody waits");
        assert_eq!(word.take(ONE, nobody), Taken::Yes);
        assert!(word.wait(nobody));
        assert!(word.give(), "somebody waits");
        assert!(!word.wait(nobody), "it is free");
    }

    #[test]
    fn one_that_is_gone_poisons_it_for_ever() {
        let gone = |holder| holder == OTHER;
        let word = LockWord::new();
        assert_eq!(word.take(OTHER, gone), Taken::Yes);
        assert!(!word.wait(gone));
        assert_eq!(word.take(ONE, gone), Taken::Poisoned);
        assert!(word.is_poisoned(nobody));
        // A guard that was leaked and then dropped after all.
        assert!(!word.give());
        assert_eq!(word.take(ONE, nobody), Taken::Poisoned);
    }
}
