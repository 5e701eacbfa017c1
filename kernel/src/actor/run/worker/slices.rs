//! What a worker does when a slice ends in its turn, and the turn is not left: it says whether one behaviour has run all the time, and
//! whether anything waits for the end of the turn; and it ends the turn behind the behaviour that runs. How a behaviour is suspended
//! is in `run/detach.rs`, who asks for what in `sched/run/slice.rs`.

use super::Worker;
use super::run_list::MOST_IN_HAND;
use crate::actor::mail::list::Resting;
use crate::actor::run::batch::Batch;
use crate::actor::run::kill::Piece;
use crate::actor::storage::Word;
use crate::arch::atomic::Ordering;
use crate::sched::EndOfPiece;

impl Worker {
    pub(super) fn batch(&self) -> &Batch {
        // SAFETY: set at the start and by `detach` only, to live batches. The callers are on its core, where it does not change
        // meanwhile.
        unsafe { &*self.batch.load(Ordering::Relaxed) }
    }

    /// Whether the envelope that is being delivered is the one that was when the last slice ended. One that is not delivering runs no
    /// behaviour.
    ///
    /// Within a batch the position tells, between batches the messages that were handled: they are counted where a segment of a batch
    /// ends, before another begins. Without statistics they are not counted, and another batch may be taken for the same: then a
    /// behaviour is suspended that has not run for long.
    pub(in crate::actor::run) fn note_slice_end(&self) -> bool {
        let batch = self.batch();
        if !batch.is_armed() {
            self.slice_mark.set((0, 0));
            return false;
        }
        let handled = self.statistics.messages_handled.get() + batch.tally.handled();
        let position = batch.current().map_or(0, |envelope| envelope.addr().get());
        self.slice_mark.replace((handled, position)) == (handled, position)
    }

    /// What waits is looked at: notes how much waits in the lane, and whether all that did at the last look was handled since. In the core's loop, where the turn
    /// was interrupted.
    pub(super) fn note_look(&self) {
        let before = self.look_mark.replace(self.lane_mark());
        self.keeps_up.set(before.is_some_and(|before| self.lane_has_passed(before)));
    }

    /// Whether all was handled at the last look that had waited in the lane at the one before: no message in it has waited for longer than passes between two. As there.
    pub(super) fn lane_keeps_up(&self) -> bool {
        self.batch().is_lane() && self.keeps_up.get()
    }

    /// Whether mail has come for what rests in hand, which nobody else takes: for one of the first `most` mailboxes. `None` if not, and there
    /// are more. For the interrupt of its own core, too: the turn may be in the middle of changing the list, so no more are looked at than
    /// there can be.
    pub(in crate::actor::run) fn has_waiting_for_end(&self, most: usize) -> Option<bool> {
        for (before, Resting(mailbox)) in self.resting.iter().take(MOST_IN_HAND).enumerate() {
            if before == most {
                return None;
            }
            if mailbox.waiting() > 0 {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Whether the behaviour that runs is to end now, because its actor was killed, or all are.
    pub(in crate::actor::run) fn is_to_end(&self, asked: EndOfPiece) -> bool {
        let batch = self.batch();
        let Some(envelope) = batch.current().filter(|_| batch.is_armed()) else { return false };
        // SAFETY: being delivered, or next; its head is never changed.
        let (cell, word) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
        let is_held = Word::is_attached;
        let piece = Piece { cell, word, is_held, tally: &batch.tally, envelope: Some(envelope) };
        piece.is_to_end(&self.executor, asked, false)
    }

    /// The turn is to end behind the behaviour that runs. Whether it will: where none runs it may begin another batch first, though it
    /// looks before most. On its core, where the turn was interrupted with preemption enabled.
    pub(in crate::actor::run) fn end_turn(&self) -> bool {
        let batch = self.batch();
        let is_delivering = batch.is_armed() && batch.segment().is_some();
        if is_delivering {
            if batch.is_lane() {
                self.cut_lane();
            } else {
                batch.cut();
            }
            self.statistics.cut_batches.bump();
        }
        is_delivering
    }
}
