//! The end of an executor: undelivered messages and actors are dropped, each exactly once, and its
//! mailboxes go back to the directory.

use super::cell::{Chunk, all_chunks};
use super::mailbox::directory;
use super::shared::Shared;
use super::word::Life;
use super::{cell, pool, static_actor};
use crate::sync::PreemptGuard;

/// Drops everything. Returns how many messages were not delivered.
///
/// # Safety
/// All workers and suspended behaviours have ended, and all mailboxes are closed.
pub(super) unsafe fn clear(shared: &Shared) -> u64 {
    let mut dropped = 0;
    // SAFETY: by contract.
    for worker in unsafe { shared.take_workers() } {
        // SAFETY: the worker has ended, and with the mailboxes closed nobody wakes it.
        dropped += unsafe {
            worker.drop_process();
            worker.drop_batch()
        };
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
    let mut left = shared.live.count();
    let cells = all_chunks().flat_map(Chunk::cells).chain(static_actor::all_cells());
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
            // One that is being started or taken is given back by whoever does that.
            Some(Life::Free | Life::Starting) | None => continue,
        };
        // What is left in the user's own storage is the user's.
        if is_kept || !directory::get(word.mailbox()).is_open_for(shared) {
            continue;
        }
        let claimed = word.starting();
        // SAFETY: as above.
        if !unsafe { cell.as_ref() }.claim(word, claimed) {
            continue;
        }
        if has_state {
            // SAFETY: no worker is left that could run the actor, and nobody else can claim the cell.
            unsafe { (cell::kind(cell, word).drop_state)(cell) };
        }
        let here = PreemptGuard::new();
        if word.is_alive() {
            shared.live.ended(1, &here);
            left -= 1;
        }
        pool::give(cell, word, &here);
    }
}
