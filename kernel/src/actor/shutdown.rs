//! The end of an executor: undelivered messages and actors are dropped, each exactly once, and its
//! mailboxes go back to the directory.
//!
//! Dropping is the application's code, so it is done by a process that may crash: what that was dropping is lost, and
//! another one goes on with the rest. Wherever it stops, each message and each actor is either where it was or is known to be
//! in the hands of the process.

use alloc::sync::Arc;
use core::ptr::{self, NonNull};

use super::ask::files;
use super::mail::{directory, oldest};
use super::shared::Shared;
use super::storage::cell::{self, Chunk, all_chunks};
use super::storage::{CellHeader, Life, Word, pool, static_cell};
use crate::arch::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::sched::{self, Priority, Spawn};
use crate::sync::PreemptGuard;

/// How far the end has come. One process at a time writes it, and each is joined by the next: every access is relaxed.
pub(super) struct Clearing {
    /// Messages that were not delivered.
    dropped: AtomicU64,
    /// Whose state, or message, is being dropped.
    cell: AtomicPtr<CellHeader>,
    word: AtomicU64,
}

impl Clearing {
    /// Nothing is done yet.
    pub(super) fn new() -> Self {
        Self { dropped: AtomicU64::new(0), cell: AtomicPtr::new(ptr::null_mut()), word: AtomicU64::new(0) }
    }

    /// What is dropped now belongs to this actor.
    fn begin(&self, cell: NonNull<CellHeader>, word: Word) {
        self.word.store(word.bits(), Ordering::Relaxed);
        self.cell.store(cell.as_ptr(), Ordering::Relaxed);
    }

    /// The process that was dropping has crashed: whoever waits for a reply that it may have held is told.
    fn crashed(&self) {
        if let Some(cell) = NonNull::new(self.cell.load(Ordering::Relaxed)) {
            files::crashed(cell, Word::from_bits(self.word.load(Ordering::Relaxed)));
        }
    }
}

/// Drops everything. Returns how many messages were not delivered.
///
/// # Safety
/// All workers and suspended behaviours have ended, and all mailboxes are closed. Called once.
pub(super) async unsafe fn clear(shared: Arc<Shared>) -> u64 {
    for worker in shared.workers() {
        // SAFETY: by contract.
        unsafe { worker.give_batch_back() };
    }
    let priority = sched::current_process().map_or(Priority::Normal, |process| process.priority());
    loop {
        let in_process = shared.clone();
        // SAFETY: by contract, and one at a time.
        let dropping = async move { unsafe { drop_all(&in_process) } };
        let Ok(dropping) = Spawn::new().priority(priority).start(dropping) else {
            // There is no other process: then in this one.
            // SAFETY: as above.
            unsafe { drop_all(&shared) };
            break;
        };
        if dropping.await.is_ok() {
            break;
        }
        shared.clearing.crashed();
    }
    // SAFETY: by contract.
    for worker in unsafe { shared.take_workers() } {
        // SAFETY: the worker has ended, and with the mailboxes closed nobody wakes it.
        unsafe { worker.drop_process() };
    }
    shared.mailboxes.iter().copied().for_each(directory::give);
    shared.clearing.dropped.load(Ordering::Relaxed)
}

/// Drops messages and actors, as far as that was not done.
///
/// # Safety
/// As [`clear`], after the workers have given back what they had in hand; one process at a time.
unsafe fn drop_all(shared: &Shared) {
    let clearing = &shared.clearing;
    for mailbox in &shared.mailboxes {
        while let Some(mut message) = oldest::take(mailbox) {
            let dropped = clearing.dropped.load(Ordering::Relaxed);
            clearing.dropped.store(dropped + 1, Ordering::Relaxed);
            let (cell, word) = message.target();
            clearing.begin(cell, word);
            message.drop_message();
        }
        mailbox.tidy();
    }
    drop_actors(shared);
}

/// Drops the actors of this executor, wherever their cells are.
fn drop_actors(shared: &Shared) {
    let mut left = shared.live.count();
    let cells = all_chunks().flat_map(Chunk::cells).chain(static_cell::all());
    for cell in cells {
        // There may be many cells, and few of them this executor's.
        if left == 0 && !shared.has_kept() {
            return;
        }
        // SAFETY: cells are never unmapped. The acquire in it pairs with whoever left the state there.
        let word = unsafe { cell.as_ref() }.word();
        let (has_state, is_kept) = match word.life() {
            Some(Life::Attached | Life::Detached) => (true, false),
            Some(Life::Finished) => (true, word.is_static()),
            Some(Life::Destroyed) => (false, word.is_static()),
            // One that is being started, taken or dropped is given back by whoever does that.
            Some(Life::Free | Life::Starting | Life::Ending) | None => continue,
        };
        // What is left in the user's own storage is the user's.
        if is_kept || !directory::get(word.mailbox()).is_open_for(shared.as_runner()) {
            continue;
        }
        let claimed = word.ending();
        // SAFETY: as above.
        if !unsafe { cell.as_ref() }.claim(word, claimed) {
            continue;
        }
        if word.is_alive() {
            // Before its state is dropped, for the process may end there.
            shared.live.ended(1, &PreemptGuard::new());
            left -= 1;
        }
        if let Some(drop_state) = cell::kind(cell, word).drop_state.filter(|_| has_state) {
            shared.clearing.begin(cell, word);
            // SAFETY: no worker is left that could run the actor, and nobody else can claim the cell.
            unsafe { drop_state(cell) };
        }
        pool::give(cell, word, &PreemptGuard::new());
    }
}
