//! A queue of words behind a lock, for tests of what is appended there without a preemption guard.
//!
//! It lies as a mailbox does. Which words, and who appends them, is the test's.

use alloc::vec::Vec;
use core::mem::{MaybeUninit, offset_of};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

use magpie::internals::arch::append::{MOST_WORDS, Words};
use magpie::internals::arch::locked_append::{PLACE_AT, WAITING_AT, append};
use magpie::internals::sync::PreemptGuard;

/// A lock, the queue behind it, and its words.
#[repr(C)]
pub struct LockedQueue {
    /// 0 while it is free, 1 while it is held.
    pub lock: AtomicU32,
    /// How many wait.
    pub waiting: AtomicU32,
    place: AtomicPtr<u8>,
    /// Up to where a sender writes; null for a queue that wants care, or in which nothing waits.
    pub limit: AtomicPtr<u8>,
    words: Vec<AtomicU64>,
    /// Appended is only while this is 0.
    pub refused: AtomicU64,
}

const _: () = {
    assert!(offset_of!(LockedQueue, place) == PLACE_AT);
    assert!(offset_of!(LockedQueue, waiting) == WAITING_AT);
};

impl LockedQueue {
    /// With room for so many words, and with one message that waits, whose words are none.
    pub fn new(words: usize) -> Self {
        let words: Vec<_> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let range = words.as_ptr_range();
        Self {
            lock: AtomicU32::new(0),
            waiting: AtomicU32::new(1),
            place: AtomicPtr::new(range.start.cast_mut().cast()),
            limit: AtomicPtr::new(range.end.cast_mut().cast()),
            words,
            refused: AtomicU64::new(0),
        }
    }

    /// Appends these, if the lock is free, and there is room. From three words on.
    #[inline(always)]
    pub fn append<const COUNT: usize>(&self, words: [u64; COUNT]) -> bool {
        let mut all: Words = [MaybeUninit::uninit(); MOST_WORDS];
        for (place, word) in all.iter_mut().zip(words) {
            place.write(word);
        }
        // SAFETY: it lies as the layout says, and its words are written under the lock alone.
        unsafe { append::<COUNT>((&raw const *self).cast(), &all, (&self.refused, 0)) }
    }

    /// Does something with the lock held, as code of the kernel does that has a guard for it.
    pub fn locked<R>(&self, does: impl FnOnce() -> R) -> R {
        let _here = PreemptGuard::new();
        while self.lock.compare_exchange(0, 1, Ordering::Acquire, Ordering::Relaxed).is_err() {
            core::hint::spin_loop();
        }
        let done = does();
        // Release: pairs with the acquire above, and with that of a sequence.
        self.lock.store(0, Ordering::Release);
        done
    }

    /// How many words were appended.
    pub fn appended(&self) -> usize {
        // Relaxed, here and below: asked with the lock held, or when those who append have ended.
        (self.place.load(Ordering::Relaxed).addr() - self.words.as_ptr().addr()) / size_of::<u64>()
    }

    /// The word at this place.
    pub fn word(&self, index: usize) -> u64 {
        self.words[index].load(Ordering::Relaxed)
    }

    /// Its place was stored, as by a sequence that is interrupted behind that, when so many words were appended.
    pub fn set_appended(&self, words: usize) {
        self.place.store(self.words[words..].as_ptr().cast_mut().cast(), Ordering::Relaxed);
    }
}
