//! How far the end of an executor has come: what the process notes that drops what is left, for the next one should it
//! crash.

use core::ptr::{self, NonNull};

use core::time::Duration;

use super::at_work::asked;
use crate::actor::storage::{CellHeader, CellRef, Word};
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use crate::message::ask::pending;
use crate::sync::{Seat, Waiters};

/// How far the end has come. One process at a time writes it, and each is joined by the next: every access is relaxed, but for the last word.
pub(super) struct Clearing {
    /// Messages that were not delivered.
    dropped: AtomicU64,
    /// Whose state, or message, is being dropped.
    cell: AtomicPtr<CellHeader>,
    word: AtomicU64,
    /// One more at the beginning and at the end of each drop: odd, while the application's code runs.
    steps: AtomicU64,
    /// Drops that were killed because they did not end.
    killed: AtomicU64,
    /// How long what does not come on may take, in nanoseconds.
    limit: AtomicU64,
    /// Nothing is left.
    is_over: AtomicBool,
    /// Those who wait for that.
    waiting: Waiters,
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
            limit: AtomicU64::new(0),
            is_over: AtomicBool::new(false),
            waiting: Waiters::new(),
        }
    }

    /// What does not come on may take so long. Before the process that drops is started.
    pub(super) fn set_limit(&self, limit: Duration) {
        self.limit.store(u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// How long.
    pub(super) fn limit(&self) -> Duration {
        Duration::from_nanos(self.limit.load(Ordering::Relaxed))
    }

    /// All is done.
    pub(super) fn all_done(&self) {
        // Release: pairs with the acquire in `is_over`, for what was counted.
        self.is_over.store(true, Ordering::Release);
        self.waiting.tell_all(|| ());
    }

    /// Whether all is done.
    pub(super) fn is_over(&self) -> bool {
        // Acquire: pairs with the release in `end`.
        self.is_over.load(Ordering::Acquire)
    }

    /// A place for one who waits until all is done.
    pub(super) fn seat(&self) -> Seat<'_> {
        self.waiting.seat()
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
        // What the last was dropping may have crashed in the middle.
        self.steps.store((self.steps() + 1) | 1, Ordering::Relaxed);
        self.word.store(word.bits(), Ordering::Relaxed);
        self.cell.store(cell.pointer().as_ptr(), Ordering::Relaxed);
    }

    /// That is dropped.
    pub(super) fn end_step(&self) {
        self.steps.store((self.steps() | 1) + 1, Ordering::Relaxed);
    }

    fn steps(&self) -> u64 {
        self.steps.load(Ordering::Relaxed)
    }

    /// Which drop is in progress, by a number that only grows, if one is. Also for who waits for that.
    pub(super) fn dropping(&self) -> Option<u64> {
        Some(self.steps()).filter(|steps| steps % 2 == 1)
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
        self.end_step();
        if let Some(cell) = NonNull::new(self.cell.load(Ordering::Relaxed)) {
            // SAFETY: stored by `begin`.
            let cell = unsafe { CellRef::new(cell) };
            pending::fail_all(asked(cell, Word::from_bits(self.word.load(Ordering::Relaxed))));
        }
    }
}
