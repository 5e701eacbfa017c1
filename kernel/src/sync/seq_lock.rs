//! A sequence lock: one core publishes a small value, the others read it without slowing it down.
//!
//! The value travels as words, each an atomic, so a reader that meets a writer reads a mixture of words,
//! never undefined memory, and throws the mixture away. The sequence number is odd while the words change:
//!
//! - *write*: make it odd; release fence; write the words; make it even again with release;
//! - *read*: load it with acquire, again while it is odd; read the words; acquire fence; the words belong
//!   together if the number is still the same.
//!
//! Pairs: the release fence with the acquire fence (a reader that saw a new word sees the odd number), and
//! the release store with the acquire load (a reader that saw the even number sees its words).

use super::PreemptGuard;
use crate::arch::atomic::{AtomicU64, Ordering, fence};
use crate::arch::cpu;
use crate::mutant;

/// A value that can be taken apart into `WORDS` words and put together again.
pub trait Words<const WORDS: usize>: Copy {
    /// The value as words.
    fn to_words(self) -> [u64; WORDS];
    /// The value of these words.
    fn from_words(words: [u64; WORDS]) -> Self;
}

impl<const WORDS: usize> Words<WORDS> for [u64; WORDS] {
    fn to_words(self) -> [u64; WORDS] {
        self
    }

    fn from_words(words: [u64; WORDS]) -> Self {
        words
    }
}

/// A value that one core writes and any core reads.
pub struct SeqLock<T: Words<WORDS>, const WORDS: usize> {
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
    _value: core::marker::PhantomData<fn(T) -> T>,
}

impl<T: Words<WORDS>, const WORDS: usize> SeqLock<T, WORDS> {
    /// A lock around the value whose words are all 0: so it can stand in a `static`.
    #[cfg(not(loom))]
    pub const fn zeroed() -> Self {
        Self {
            sequence: AtomicU64::new(0),
            words: [const { AtomicU64::new(0) }; WORDS],
            _value: core::marker::PhantomData,
        }
    }

    /// A lock around the value whose words are all 0.
    #[cfg(loom)]
    pub fn zeroed() -> Self {
        Self {
            sequence: AtomicU64::new(0),
            words: core::array::from_fn(|_| AtomicU64::new(0)),
            _value: core::marker::PhantomData,
        }
    }

    /// A lock around `value`.
    pub fn new(value: T) -> Self {
        let lock = Self::zeroed();
        lock.write(value);
        lock
    }

    /// Publishes `value`. One core writes at a time: two at once would mix their values.
    ///
    /// Preemption is off meanwhile, for readers wait as long as the number is odd.
    pub fn write(&self, value: T) {
        let _preempt = PreemptGuard::new();
        // Relaxed: only the writer changes it.
        let sequence = self.sequence.load(Ordering::Relaxed);
        debug_assert!(sequence.is_multiple_of(2), "two cores write to one sequence lock at once");
        // Relaxed: the fence keeps it before the words.
        self.sequence.store(sequence.wrapping_add(1), Ordering::Relaxed);
        if !mutant::is("seq-write-no-fence") {
            // Pairs with the acquire fence in `try_read`.
            fence(Ordering::Release);
        }
        for (word, new) in self.words.iter().zip(value.to_words()) {
            // Relaxed: between the fence and the release.
            word.store(new, Ordering::Relaxed);
        }
        // Release: pairs with the acquire load in `try_read`.
        let release = mutant::choose("seq-write-relaxed", Ordering::Release, Ordering::Relaxed);
        self.sequence.store(sequence.wrapping_add(2), release);
    }

    /// The value, unless a write was under way.
    pub fn try_read(&self) -> Option<T> {
        // Acquire: pairs with the release store in `write`.
        let before = self.sequence.load(Ordering::Acquire);
        if !before.is_multiple_of(2) && !mutant::is("seq-read-odd") {
            return None;
        }
        // Relaxed: between the acquire and the fence.
        let words = core::array::from_fn(|index| self.words[index].load(Ordering::Relaxed));
        if !mutant::is("seq-read-no-fence") {
            // Pairs with the release fence in `write`.
            fence(Ordering::Acquire);
        }
        // Relaxed: the fence keeps it after the words.
        let after = self.sequence.load(Ordering::Relaxed);
        (before == after || mutant::is("seq-read-unchecked")).then(|| T::from_words(words))
    }

    /// The value; waits while a write is under way.
    pub fn read(&self) -> T {
        loop {
            if let Some(value) = self.try_read() {
                return value;
            }
            cpu::relax();
        }
    }
}
