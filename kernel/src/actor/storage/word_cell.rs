//! Words of cells: whoever sees one say that something is in a place sees that thing as it was left.

use crate::arch::atomic::{AtomicU64, Ordering, const_fn};

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
        self.0.load(Ordering::Acquire)
    }

    /// The word alone: what it speaks of must not be touched on its account.
    #[inline(always)]
    pub fn peek(&self) -> u64 {
        // Relaxed: nothing is read after it.
        self.0.load(Ordering::Relaxed)
    }

    /// The atomic itself, for who compares it in a step of several instructions, with an acquire.
    #[inline(always)]
    pub fn atomic(&self) -> &AtomicU64 {
        &self.0
    }

    /// Changes the word, and hands over what it speaks of.
    #[inline(always)]
    pub fn set(&self, word: u64) {
        // Release: pairs with the acquire in `get` and in `claim`.
        self.0.store(word, Ordering::Release);
    }

    /// Changes the word from `from` to `to`, if nobody was faster. The winner sees the thing as it was left.
    pub fn claim(&self, from: u64, to: u64) -> bool {
        // Acquire: pairs with the release in `set`.
        self.0.compare_exchange(from, to, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}
