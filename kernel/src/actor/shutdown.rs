//! The end of an executor: undelivered messages and actors are dropped, each exactly once, and its
//! mailboxes go back to the directory.

use super::cell::all_chunks;
use super::executor::{self, Shared};
use super::mailbox::directory;
use super::pool;
use crate::sync::PreemptGuard;

/// Drops everything. Returns how many messages were not delivered.
///
/// # Safety
/// All workers and suspended behaviours have ended, and all mailboxes are closed.
pub(super) unsafe fn clear(shared: &Shared) -> u64 {
    let mut dropped = 0;
    // SAFETY: by contract.
    for worker in unsafe { shared.take_workers() } {
        dropped += worker.drop_batch();
    }
    for mailbox in &shared.mailboxes {
        dropped += mailbox.clear();
    }
    drop_actors(shared);
    shared.mailboxes.iter().copied().for_each(directory::give);
    dropped
}

/// Drops the actors of this executor, wherever their cells are.
fn drop_actors(shared: &Shared) {
    for chunk in all_chunks() {
        for cell in chunk.cells() {
            // SAFETY: cells are never unmapped.
            let word = unsafe { cell.as_ref() }.word();
            if word.is_alive() && executor::is_of(directory::get(word.mailbox()), shared) {
                // SAFETY: no worker is left that could run the actor, and the word says so no more below.
                unsafe { (chunk.kind.drop_state)(cell) };
                let here = PreemptGuard::new();
                pool::give(cell, word, &here);
            }
        }
    }
}
