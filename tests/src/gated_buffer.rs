//! Words behind a gate, for tests of what is appended there without a preemption guard.
//!
//! Which words, and who appends them, is the test's.

use alloc::vec::Vec;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

use magpie::internals::arch::append::{Gate, MOST_WORDS, Words, append, append_block};
use magpie::internals::sync::PreemptGuard;

/// A gate, with the buffer behind it.
pub struct GatedBuffer {
    /// Who appends asks this.
    pub gate: Gate,
    cursor: AtomicPtr<u8>,
    words: Vec<AtomicU64>,
    /// Appended is only while this is 0.
    pub refused: AtomicU64,
}

impl GatedBuffer {
    /// With room for so many words, and closed.
    pub fn new(words: usize) -> Self {
        let words: Vec<_> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let begin = words.as_ptr().cast_mut().cast();
        Self { gate: Gate::closed(), cursor: AtomicPtr::new(begin), words, refused: AtomicU64::new(0) }
    }

    /// Opens it for the core that the caller is on.
    pub fn open(&self, _here: &PreemptGuard) {
        let limit = self.words.as_ptr_range().end.cast_mut().cast();
        // SAFETY: the cursor leads into the words, which end there, and lives as long as the gate.
        unsafe { self.gate.open(&self.cursor, limit) };
    }

    /// Appends these, if the gate lets them through. From three words on.
    #[inline(always)]
    pub fn append<const COUNT: usize>(&self, words: [u64; COUNT]) -> bool {
        let mut all: Words = [MaybeUninit::uninit(); MOST_WORDS];
        for (place, word) in all.iter_mut().zip(words) {
            place.write(word);
        }
        // SAFETY: `open` keeps the contract.
        unsafe { append::<COUNT, 0>((&raw const self.gate).cast(), &all, (&self.refused, 0)) }
    }

    /// Appends three words and a block behind them, if the gate lets them through.
    #[inline(always)]
    pub fn append_block<const BYTES: usize>(&self, head: [u64; 3], block: &[u8; BYTES]) -> bool {
        // SAFETY: `open` keeps the contract; the block is there.
        unsafe { append_block::<_, 0>((&raw const self.gate).cast(), head, block, (&self.refused, 0)) }
    }

    /// How many words were appended.
    pub fn appended(&self) -> usize {
        // Relaxed, here and below: asked when those who append have ended.
        (self.cursor.load(Ordering::Relaxed).addr() - self.words.as_ptr().addr()) / size_of::<u64>()
    }

    /// The word at this place.
    pub fn word(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }
}
