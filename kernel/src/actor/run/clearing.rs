//! How far the end of an executor has come: what the process notes that drops what is left, for the next one should it
//! crash.

use core::ptr::{self, NonNull};

use super::at_work::asked;
use crate::actor::storage::{CellHeader, CellRef, Word};
use crate::arch::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::message::ask::pending;

/// How far the end has come. One process at a time writes it, and each is joined by the next: every access is relaxed.
pub(super) struct Clearing {
    /// Messages that were not delivered.
    dropped: AtomicU64,
    /// Whose state, or message, is being dropped.
    cell: AtomicPtr<CellHeader>,
    word: AtomicU64,
    /// How often something else was dropped.
    steps: AtomicU64,
    /// Drops that were killed because they did not end.
    killed: AtomicU64,
}

impl Clearing {
    /// Nothing is done yet.
    pub(super) fn new() -> Self {
        Self {
            dropped: AtomicU64::new(0),
            cell: AtomicPtr::new(ptr::null_mut()),
            word: AtomicU64::new(0),
            steps: AtomicU64::new(0),
            killed: AtomicU64::new(0),
        }
    }

    /// One more message is dropped that was not delivered.
    pub(super) fn count_dropped(&self) {
        self.dropped.store(self.dropped() + 1, Ordering::Relaxed);
    }

    /// How many messages were not delivered.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// What is dropped now belongs to this actor.
    pub(super) fn begin(&self, cell: CellRef, word: Word) {
        self.steps.store(self.steps() + 1, Ordering::Relaxed);
        self.word.store(word.bits(), Ordering::Relaxed);
        self.cell.store(cell.pointer().as_ptr(), Ordering::Relaxed);
    }

    /// Grows with each thing that is dropped. Also for who waits for that.
    pub(super) fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// The process that was dropping did not come on, and was killed.
    pub(super) fn note_killed(&self) {
        self.killed.store(self.killed() + 1, Ordering::Relaxed);
    }

    /// How often that was so.
    pub(super) fn killed(&self) -> u64 {
        self.killed.load(Ordering::Relaxed)
    }

    /// The process that was dropping has crashed: whoever waits for a reply that it may have held is told.
    pub(super) fn crashed(&self) {
        if let Some(cell) = NonNull::new(self.cell.load(Ordering::Relaxed)) {
            // SAFETY: stored by `begin`.
            let cell = unsafe { CellRef::new(cell) };
            pending::fail_all(asked(cell, Word::from_bits(self.word.load(Ordering::Relaxed))));
        }
    }
}
