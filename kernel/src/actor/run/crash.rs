//! Actors that crash: a behaviour that panicked or faulted never returns.
//!
//! The actor ends. Its state is not dropped, because the behaviour stopped at an unknown point of changing it; but its
//! memory is given back, and its cell is free for a successor, whose generation is another. What was sent to it and what
//! is sent later is refused or counted as dead letters, which the mailbox's worker drops: no destructor runs here.
//! Everyone else goes on.
//!
//! That is sound because nobody else can reach the state: its only borrower was the behaviour, whose stack is gone, and
//! nothing that the kernel links to lies in a state (see `sched::spawn::task`).
//!
//! The message that was in hand was moved to the behaviour's stack, and the space of its envelope is given back with the
//! batch. What the message owns (the reference in a `Shared`, say) the behaviour may have passed on or dropped already,
//! so it is not given up in its name: it is noted, with the state and the stack.

use super::at_work::{asked, identity, tell_of_end};
use super::side_queue;
use super::tally::Tally;
use super::worker::{Worker, account};
use crate::actor::mail::{Envelope, directory};
use crate::actor::storage::cell::{self, Remains};
use crate::actor::storage::{CellRef, Word, meter, pool};
use crate::arch::atomic::Ordering;
use crate::mem::orphans;
use crate::message::ask::pending;
use crate::stats;
use crate::sync::{PreemptGuard, tell_of_crash};
use crate::watch::Exit;

/// The behaviour that a worker's turn was running has crashed. The turn's activation is gone; the next turn
/// goes on behind its envelope.
pub(super) fn crashed(worker: &Worker, exit: Exit) {
    let here = PreemptGuard::new();
    // SAFETY: set at the start and by `detach` only, to live batches.
    let batch = unsafe { &*worker.batch.load(Ordering::Relaxed) };
    if !batch.is_armed() {
        return;
    }
    worker.settle(&here);
    batch.disarm();
    batch.mend();
    worker.leave_hand();
    let Some(envelope) = batch.current() else { return };
    // SAFETY: the envelope's head is never changed; measuring changes nothing.
    let (cell, word, bytes) =
        unsafe { (envelope.as_ref().cell, envelope.as_ref().word, Envelope::measure(envelope)) };
    // SAFETY: the envelope and its message have so many bytes, in a segment that is still the batch's.
    unsafe { orphans::note(envelope.cast().as_ptr(), bytes) };
    end_crashed((cell, word), Word::is_attached, &batch.tally, exit);
    batch.note_gone();
    batch.advance(envelope, bytes);
    // With it what was counted before the crash, by the activation that is gone.
    account::note(&worker.executor, &batch.tally, &here);
    worker.executor.note_end_of_piece(exit);
}

/// Ends an actor that has crashed, if it has not ended yet. `is_held` says of the word in the cell whether the activation that is gone had
/// it: with any other the actor is somebody else's, or has ended, and its state is not ours to give back. One whose state was
/// being dropped has ended, and was counted; a dead letter's has, too.
pub(super) fn end_crashed(
    (cell, word): (CellRef, Word),
    is_held: fn(Word, Word) -> bool,
    tally: &Tally,
    exit: Exit,
) {
    let here = PreemptGuard::new();
    let was = cell.word();
    let remains = match was {
        was if is_held(was, word) => Some(Remains::Whole),
        was if was == word.ending() && tally.is_dropping(cell) => Some(Remains::HalfDropped),
        _ => None,
    };
    tally.set_dropping(None);
    // One whose state was being dropped has no word any more that says it.
    let left = tally.take_meter();
    if let Some(remains) = remains {
        if remains == Remains::Whole {
            tally.add_end(false);
        }
        // From here on nobody delivers to it, and before its cell has a successor its side queue is empty.
        directory::get(word.mailbox()).gone.note();
        cell.set_word(word.ending());
        side_queue::give_up(cell, word);
        let kind = cell::kind(cell, word);
        // SAFETY: the state was the activation's alone, which is gone; the word says that nobody has it.
        let boxed = unsafe { (kind.abandon_state)(cell, remains) };
        pool::give(cell, word, &here);
        Worker::statistics(&here).actors_crashed.bump();
        // The user's own storage is not memory of the heap's.
        let in_cell = if word.is_static() { 0 } else { kind.cell_bytes() };
        stats::core_here().crash_bytes_returned.add((in_cell + boxed) as u64);
    }
    // Whatever it was dropping may have held a reply.
    pending::fail_all(asked(cell, word));
    tell_of_crash(identity(cell, word));
    if remains.is_some() {
        tell_of_end(cell, word, exit);
    }
    meter::give(left);
    if remains == Some(Remains::Whole) {
        meter::give(was.meter());
    }
}
