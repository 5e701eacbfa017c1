//! Words of cells: whoever sees one say that something is in a place sees that thing as it was left.

use crate::arch::atomic::{AtomicU64, Ordering, const_fn};
use crate::mutant;

/// The word.
pub struct WordCell(AtomicU64);

impl WordCell {
    const_fn! {
        /// With this value.
        pub fn new(word: u64) -> Self {
            Self(AtomicU64::new(word))
        }
    }

    /// The word, and what it speaks of.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        // Acquire: pairs with the release in `set`.
        self.0.load(mutant::choose("word-get-relaxed", Ordering::Acquire, Ordering::Relaxed))
    }

    /// The word alone: what it speaks of must not be touched on its account.
    #[inline(always)]
    pub fn peek(&self) -> u64 {
        // Relaxed: nothing is read after it.
        self.0.load(Ordering::Relaxed)
    }

    /// Changes the word, and hands over what it speaks of.
    #[inline(always)]
    pub fn set(&self, word: u64) {
        // Release: pairs with the acquire in `get` and in `claim`.
        self.0.store(word, mutant::choose("word-set-relaxed", Ordering::Release, Ordering::Relaxed));
    }

    /// Changes the word from `from` to `to`, if nobody was faster. The winner sees the thing as it was left.
    pub fn claim(&self, from: u64, to: u64) -> bool {
        if mutant::is("word-claim-in-two") {
            let won = self.0.load(Ordering::Acquire) == from;
            if won {
                self.0.store(to, Ordering::Relaxed);
            }
            return won;
        }
        // Acquire: pairs with the release in `set`.
        let order = mutant::choose("word-claim-relaxed", Ordering::Acquire, Ordering::Relaxed);
        self.0.compare_exchange(from, to, order, Ordering::Relaxed).is_ok()
    }
}
