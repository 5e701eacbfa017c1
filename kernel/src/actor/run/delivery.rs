//! Delivering a batch, and what happens to an actor afterwards.

use core::ptr::NonNull;

use super::at_work::tell_of_end;
use super::batch::Batch;
use super::metered::Metered;
use super::side_queue;
use super::tally::Tally;
use crate::actor::mail::envelope::{self, HAS_HOOK, KILLED, OUTCOME_MASK, SizeAndOutcome};
use crate::actor::mail::{Envelope, directory};
use crate::actor::storage::{CellRef, Life, Outcome, Word, cell, meter, pool};
use crate::sync::PreemptGuard;
use crate::watch::Exit;

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

/// Delivers the envelopes of the batch's current segment, at most `budget`, and says what is left of that. The batch may have been
/// split when this returns; then the caller is the suspended behaviour's activation, with one envelope to finish.
///
/// # Safety
/// The caller is the activation that the batch belongs to.
#[inline(always)]
pub(super) unsafe fn deliver(batch: &Batch, budget: u64) -> (Delivered, u64) {
    let Some(envelope) = batch.current() else { return (Delivered::All, budget) };
    if budget == 0 {
        return (Delivered::OutOfBudget, 0);
    }
    // SAFETY: by contract; the current one.
    unsafe { deliver_from(batch, envelope, budget) }
}

/// As [`deliver`], where the batch's current envelope is known, and something is left of the budget.
///
/// # Safety
/// As [`deliver`], and this is the current envelope.
#[inline(always)]
pub(super) unsafe fn deliver_from(
    batch: &Batch,
    mut envelope: NonNull<Envelope>,
    budget: u64,
) -> (Delivered, u64) {
    if batch.is_unchecked() {
        // SAFETY: by contract.
        return unsafe { deliver_checking(batch, budget) };
    }
    let mut left = budget;
    let at = loop {
        // SAFETY: envelopes up to the end of the segment were written by senders and not delivered yet. They are
        // checked: the actor is alive and attached, or held by this very activation, and its mailbox is being processed
        // by this worker alone, so this core alone runs it. Its state is seen as it was left, because its sender, on
        // this core, has found it attached with an acquire.
        let progress = unsafe { Envelope::deliver_run(envelope, batch.extent(), left, false) };
        left = progress.left;
        match progress.next(envelope) {
            Some(next) => envelope = next,
            None => break progress.at,
        }
    };
    let left = batch.extent().left();
    batch.tally.add_handled(budget - left);
    if at & OUTCOME_MASK != 0 {
        // SAFETY: by contract; the batch's current envelope was delivered.
        return unsafe { go_on_checking(at, batch, left) };
    }
    (if at == 0 { Delivered::All } else { Delivered::OutOfBudget }, left)
}

/// A behaviour ended its actor. There may be more for that one in the batch, so from here on each envelope's actor is looked at.
///
/// # Safety
/// As [`deliver`]. The batch's current envelope was delivered with this result.
#[cold]
#[inline(never)]
unsafe fn go_on_checking(result: usize, batch: &Batch, budget: u64) -> (Delivered, u64) {
    after(result, batch);
    // SAFETY: by contract.
    unsafe { deliver_checking(batch, budget) }
}

/// As [`deliver`], with a look at each envelope's actor.
///
/// # Safety
/// As [`deliver`].
#[inline(never)]
unsafe fn deliver_checking(batch: &Batch, budget: u64) -> (Delivered, u64) {
    let Some(mut envelope) = batch.current() else { return (Delivered::All, budget) };
    if budget == 0 {
        return (Delivered::OutOfBudget, 0);
    }
    let mut left = budget;
    // Of the envelopes taken from the budget, those that took the slow way; it counts for itself.
    let mut slow = 0;
    let outcome = loop {
        // SAFETY: envelopes up to the end of the segment were written by senders and not delivered yet.
        let next = if unsafe { Envelope::is_for_attached(envelope) } {
            // SAFETY: the actor is alive and attached, and its mailbox is being processed by this worker alone, so this core alone
            // runs it. So it is with others that have their word.
            let progress = unsafe { Envelope::deliver_run(envelope, batch.extent(), left, true) };
            left = progress.left;
            match progress.next(envelope) {
                Some(next) => Some(next),
                None => {
                    left = batch.extent().left();
                    if progress.at & OUTCOME_MASK != 0 {
                        after(progress.at, batch);
                    }
                    batch.current()
                }
            }
        } else {
            left -= 1;
            slow += 1;
            // SAFETY: as above.
            match unsafe { deliver_slowly(batch, envelope) } {
                Some(bytes) => batch.advance(envelope, bytes),
                None => break Delivered::Blocked,
            }
            batch.current()
        };
        let Some(next) = next else { break Delivered::All };
        envelope = next;
        if left == 0 {
            break Delivered::OutOfBudget;
        }
    };
    batch.tally.add_handled(budget - left - slow);
    (outcome, left)
}

/// The actor has ended, is another by now, or is held by a suspended behaviour. Returns the envelope's size
/// once it needs no more care.
///
/// # Safety
/// As [`deliver`]; `envelope` is the batch's current one.
#[cold]
#[inline(never)]
unsafe fn deliver_slowly(batch: &Batch, envelope: NonNull<Envelope>) -> Option<usize> {
    // SAFETY: by contract.
    let (cell, expected) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
    // The interrupt must not split the batch between this look and the next: this activation would then put aside the message
    // that it is to deliver itself, behind those that came later.
    let here = PreemptGuard::new();
    let has_meter = cell.word().is_attached(expected) && cell.word() != expected;
    if has_meter || batch.holds(envelope) {
        drop(here);
        // It is attached, and has a meter; or it is this very activation that was suspended, before it had begun: it goes on.
        // SAFETY: as for any other that is attached, or the actor is ours alone while it is detached.
        return Some(unsafe { deliver_alone(batch, envelope) });
    }
    let kept = side_queue::keep(cell, expected, envelope);
    drop(here);
    match kept {
        // Until the batch is past it the envelope is in two places. The interrupt leaves it alone while its actor is detached. If that is attached
        // again by then, the copy was delivered, and a split here finds nothing left to deliver.
        side_queue::Kept::Yes(bytes) => Some(bytes),
        side_queue::Kept::OutOfMemory => None,
        side_queue::Kept::NotDetached(true) => {
            // It was re-attached between the look and now: look again, without moving on.
            Some(0)
        }
        // SAFETY: it was not delivered, and is not looked at again.
        side_queue::Kept::NotDetached(false) => Some(unsafe { drop_letter(envelope, &batch.tally) }),
    }
}

/// Delivers the batch's current envelope by itself. Returns its size.
///
/// # Safety
/// As [`deliver`], and its actor is attached, or held by this activation.
unsafe fn deliver_alone(batch: &Batch, envelope: NonNull<Envelope>) -> usize {
    // SAFETY: by contract; its head is never changed.
    let (cell, word) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
    let metered = Metered::begin(cell);
    // SAFETY: by contract.
    let result = unsafe { Envelope::deliver(envelope) };
    metered.count();
    batch.tally.add_handled(1);
    if result & OUTCOME_MASK != 0 {
        batch.note_end(envelope);
        end_actor(cell, word, result, &batch.tally);
        batch.note_gone();
    }
    result & !OUTCOME_MASK
}

/// Drops the message of a dead letter, with preemption enabled: that is the application's code. Returns the envelope's
/// size.
///
/// # Safety
/// It was not delivered, and is not looked at again.
pub(super) unsafe fn drop_letter(envelope: NonNull<Envelope>, tally: &Tally) -> usize {
    tally.add_dead_letters(1);
    // SAFETY: by contract.
    unsafe { Envelope::drop_message(envelope) }
}

/// The behaviour of the batch's current envelope ended its actor, with this result.
#[cold]
#[inline(never)]
fn after(result: usize, batch: &Batch) {
    let envelope = batch.position().cast::<Envelope>();
    // SAFETY: its head is never changed.
    let (cell, word) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
    batch.note_end(envelope);
    end_attached(cell, word, result, &batch.tally);
    batch.note_gone();
    batch.advance(envelope, result & !OUTCOME_MASK);
}

/// Ends an actor, attached or held by the caller, as its behaviour's result says. Its hook is run and its state dropped with
/// preemption enabled, because that is the application's code. From before that on the actor's word says that it has ended: whoever meets a message for it meets
/// a dead letter, the interrupt that splits a batch here leaves no actor to the activation, and a crash loses the state
/// alone.
pub(super) fn end_actor(cell: CellRef, word: Word, result: SizeAndOutcome, tally: &Tally) {
    let here = PreemptGuard::new();
    end_slowly(cell, word, result, tally, here);
}

/// The same for one that had no cause to be held, and most often has nothing to be dropped and no hook: then it is done in one go.
#[inline(always)]
fn end_attached(cell: CellRef, word: Word, result: SizeAndOutcome, tally: &Tally) {
    // The actor must not be detached between the look at its word and the change.
    let here = PreemptGuard::new();
    let is_plain = result & OUTCOME_MASK == Outcome::End as usize;
    if !is_plain || cell.word() != word || cell::kind(cell, word).drop_state.is_some() {
        return end_slowly(cell, word, result, tally, here);
    }
    tally.add_end(false);
    // Until all have been told nobody kills this activation (`run/kill.rs`), or they never would be.
    tally.set_dropping(Some(cell));
    directory::get(word.mailbox()).gone.note();
    free(cell, word, Outcome::End, &here);
    drop(here);
    tell_of_end(cell, word, Exit::Normal);
    tally.set_dropping(None);
}

#[inline(never)]
fn end_slowly(cell: CellRef, word: Word, result: SizeAndOutcome, tally: &Tally, here: PreemptGuard) {
    let (outcome, has_hook) = (envelope::outcome(result), result & HAS_HOOK != 0);
    let exit = if result & OUTCOME_MASK == KILLED { Exit::Killed } else { Exit::Normal };
    tally.add_end(matches!(outcome, Outcome::Vacate | Outcome::Retire));
    let was_detached = !cell.word().is_attached(word);
    let drop_state = match outcome {
        Outcome::Retire => None,
        Outcome::End | Outcome::Vacate | Outcome::Continue => cell::kind(cell, word).drop_state,
    };
    // Another activation may meet a message for this actor while the state is dropped, and crash: it is not its to give
    // back. And until all have been told nobody kills this activation.
    tally.set_dropping(Some(cell));
    tally.set_meter(cell.word().meter());
    directory::get(word.mailbox()).gone.note();
    if !was_detached && drop_state.is_none() && !has_hook {
        free(cell, word, outcome, &here);
        drop(here);
        tell_of_end(cell, word, exit);
        meter::give(tally.take_meter());
        return tally.set_dropping(None);
    }
    cell.set_word(word.ending());
    if was_detached {
        // What was put aside would be nobody's, were this activation killed in the middle of it.
        side_queue::give_up(cell, word);
    }
    drop(here);
    if has_hook {
        // SAFETY: as below, and the word is that of the attached actor.
        unsafe { (cell::kind(cell, word).stopped)(cell, word) };
    }
    if let Some(drop_state) = drop_state {
        // SAFETY: the state is there, this activation alone runs the actor, and nobody else touches an ending one.
        unsafe { drop_state(cell) };
    }
    free(cell, word, outcome, &PreemptGuard::new());
    tell_of_end(cell, word, exit);
    meter::give(tally.take_meter());
    tally.set_dropping(None);
}

/// Says what is in the cell of an actor that has ended, and gives it back if that is nothing.
#[inline(always)]
fn free(cell: CellRef, word: Word, outcome: Outcome, here: &PreemptGuard) {
    let life = match outcome {
        Outcome::Vacate => Life::Vacant,
        Outcome::Retire => Life::Retired,
        Outcome::End | Outcome::Continue => return pool::give(cell, word, here),
    };
    cell.set_word(word.after_end(life));
}
