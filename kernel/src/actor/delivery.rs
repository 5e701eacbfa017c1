//! Delivering a batch, and what happens to an actor afterwards.

use core::ptr::NonNull;

use super::batch::Batch;
use super::behaviour::Outcome;
use super::cell::{self, CellHeader};
use super::envelope::{self, Envelope, OUTCOME_MASK, Request};
use super::word::{Life, Word};
use super::{pool, side_queue};
use crate::sync::PreemptGuard;

/// How a call of [`deliver`] ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Delivered {
    /// The current segment is done.
    All,
    /// The budget is used up.
    OutOfBudget,
    /// An envelope has to wait: there is no memory to keep it for an actor whose behaviour is suspended.
    Blocked,
}

/// What happened during a delivery, to be added to the statistics afterwards.
#[derive(Default)]
pub(super) struct Tally {
    pub handled: u64,
    pub dead_letters: u64,
    pub ended: u64,
    /// Whether one of those that ended has left its storage or its state behind.
    pub kept: bool,
}

/// Delivers the envelopes of the batch's current segment, at most `budget`. The batch may have been split when
/// this returns; then the caller is the suspended behaviour's activation, with one envelope to finish.
///
/// # Safety
/// The caller is the activation that the batch belongs to.
pub(super) unsafe fn deliver(batch: &Batch, budget: &mut u64, tally: &mut Tally) -> Delivered {
    let Some(mut envelope) = batch.current() else { return Delivered::All };
    let mut left = *budget;
    if left == 0 {
        return Delivered::OutOfBudget;
    }
    // Of the envelopes taken from the budget, those that took the slow way; it counts for itself.
    let mut slow = 0;
    let outcome = loop {
        // SAFETY: envelopes up to the end of the segment were written by senders and not delivered yet.
        let (cell, expected) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
        // SAFETY: cells are never unmapped. The acquire in it pairs with re-attaching on another core.
        let word = unsafe { cell.as_ref() }.word();
        envelope = if word == expected {
            // SAFETY: the actor is alive and attached, and its mailbox is being processed by this worker
            // alone, so this core alone runs it.
            let result = unsafe { Envelope::ask(envelope, Request::Deliver) };
            if result & OUTCOME_MASK == 0 {
                batch.advance(envelope, result)
            } else {
                after(result, batch, envelope, cell, expected, tally)
            }
        } else {
            slow += 1;
            // SAFETY: as above.
            match unsafe { deliver_slowly(batch, envelope, cell, expected, tally) } {
                Some(bytes) => batch.advance(envelope, bytes),
                None => {
                    left -= 1;
                    break Delivered::Blocked;
                }
            }
        };
        left -= 1;
        if batch.is_done_at(envelope) {
            break Delivered::All;
        }
        if left == 0 {
            break Delivered::OutOfBudget;
        }
    };
    tally.handled += *budget - left - slow;
    *budget = left;
    outcome
}

/// The actor has ended, is another by now, or is held by a suspended behaviour. Returns the envelope's size
/// once it needs no more care.
///
/// # Safety
/// As [`deliver`]; `envelope` is the batch's current one.
#[cold]
#[inline(never)]
unsafe fn deliver_slowly(
    batch: &Batch,
    envelope: NonNull<Envelope>,
    cell: NonNull<CellHeader>,
    expected: Word,
    tally: &mut Tally,
) -> Option<usize> {
    if batch.holds(envelope) {
        // It is this very activation that was suspended, before it had begun: it goes on.
        // SAFETY: the actor is ours alone while it is detached.
        let result = unsafe { Envelope::ask(envelope, Request::Deliver) };
        tally.handled += 1;
        if result & OUTCOME_MASK != 0 {
            batch.note_end(envelope);
            end_actor(cell, expected, envelope::outcome(result), tally);
        }
        return Some(result & !OUTCOME_MASK);
    }
    // Not preempted from here on: the envelope is in two places for a moment.
    let _here = PreemptGuard::new();
    match side_queue::keep(cell, expected, envelope) {
        side_queue::Kept::Yes(bytes) => Some(bytes),
        side_queue::Kept::OutOfMemory => None,
        side_queue::Kept::NotDetached(true) => {
            // It was re-attached between the look and now: look again, without moving on.
            Some(0)
        }
        side_queue::Kept::NotDetached(false) => {
            tally.dead_letters += 1;
            // SAFETY: it was not delivered, and is not looked at again.
            Some(unsafe { Envelope::ask(envelope, Request::Drop) })
        }
    }
}

/// A behaviour ended its actor.
#[cold]
#[inline(never)]
fn after(
    // First, for it comes in the register that it goes in.
    result: usize,
    batch: &Batch,
    envelope: NonNull<Envelope>,
    cell: NonNull<CellHeader>,
    word: Word,
    tally: &mut Tally,
) -> NonNull<Envelope> {
    // Preemption stays off until the position is past the envelope: a split must not look at a freed cell.
    let _here = PreemptGuard::new();
    batch.note_end(envelope);
    end_actor(cell, word, envelope::outcome(result), tally);
    batch.advance(envelope, result & !OUTCOME_MASK)
}

/// Ends an actor, attached or held by the caller.
pub(super) fn end_actor(cell: NonNull<CellHeader>, word: Word, outcome: Outcome, tally: &mut Tally) {
    let here = PreemptGuard::new();
    tally.ended += 1;
    tally.kept |= matches!(outcome, Outcome::Destroy | Outcome::Finished);
    // SAFETY: cells are never unmapped.
    let header = unsafe { cell.as_ref() };
    if header.word() != word {
        // It is detached: what waits in its side queue is dropped with it.
        tally.dead_letters += side_queue::discard(cell);
    }
    if outcome != Outcome::Finished {
        // SAFETY: the state is there, this core alone runs the actor, and the word says so no more below.
        unsafe { (cell::kind(cell, word).drop_state)(cell) };
    }
    let life = match outcome {
        Outcome::Destroy => Life::Destroyed,
        Outcome::Finished => Life::Finished,
        Outcome::Delete | Outcome::Continue => return pool::give(cell, word, &here),
    };
    // After the last generation nothing may follow; the storage is lost, and a finished state with it.
    header.set_word(word.after_end(life).unwrap_or(Word::UNUSED));
}
