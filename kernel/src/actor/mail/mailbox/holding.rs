//! Mail in hand: taking what has just come in hand for this core's worker, and putting it back where other cores find it.
//!
//! What is written to mail in hand, and read from it, is in `mail/hand.rs`; whose worker may have it is decided above.

use core::ptr::NonNull;

use super::{Inside, Mailbox};
use crate::actor::mail::segment::{self, Segment};
use crate::actor::storage::{CellRef, Word};
use crate::sched::{self, Setting};
use crate::sync::PreemptGuard;

/// What an attempt to take what waits in hand came to.
pub(crate) enum HoldResult {
    /// It is in hand.
    Held,
    /// Nothing was waiting.
    Empty,
    /// Another worker is handling a batch from here.
    Missed,
    /// It is to be gulped: it has a bound, or there is no segment to leave in exchange.
    Stays,
}

impl Mailbox {
    /// The first message has been written, and nobody was told of it: takes it in hand for the worker on this core, which
    /// will look at it. Whether that is possible. The message is for the actor that has this word in its cell while it is attached.
    #[inline(always)]
    pub(crate) fn take_in_hand(
        &self,
        inside: &mut Inside,
        (cell, word): (CellRef, Word),
        here: &PreemptGuard,
    ) -> bool {
        // It pairs with `done`, as in `gulp`.
        if !self.being_processed.is_free() {
            return false;
        }
        let Some(held) = inside.queue.take_plain(|| self.hand.take_spare()) else { return false };
        self.being_processed.take();
        self.gone.take();
        // Only now, because until now another worker's batch may have ended its actor.
        // SAFETY: the mail was taken out for the worker on this core, which nobody else can do from now on.
        unsafe { self.hand.hold(held, cell.word() == word, here) };
        true
    }

    /// A message is to be handed to the worker on this core beside the queue, in which nothing waits: takes the mailbox in hand for that, with an empty segment.
    /// Returns that, which has room for `bytes`. `None` if the mailbox is in hand, has a bound, is closed (its queue asks for care then, too), or keeps no such segment, or if
    /// the message's actor has this word in its cell no more. The caller must write the message there, and need not look at the actor again.
    #[inline(always)]
    pub(crate) fn take_empty(
        &self,
        inside: &mut Inside,
        bytes: usize,
        (cell, word): (CellRef, Word),
    ) -> Option<NonNull<Segment>> {
        // It pairs with `done`, as in `gulp`.
        if self.waiting() > 0 || inside.queue.is_careful() || !self.being_processed.is_free() {
            return None;
        }
        // Only now, as in `take_in_hand`. From here on nobody ends or detaches it but who has the mailbox in hand.
        if cell.word() != word {
            return None;
        }
        let segment = self.hand.take_spare_of(bytes)?;
        self.being_processed.take();
        self.gone.take();
        inside.most_messages = inside.most_messages.max(1);
        self.count_taken(1);
        self.note_first();
        Some(segment)
    }

    /// Its batch was handled, and its gate is closed: takes what has come meanwhile in hand, in exchange for `spare`, without
    /// putting it down. Whether it could; `spare` is the mailbox's then.
    #[inline(always)]
    pub(crate) fn hold_again(&self, spare: NonNull<Segment>, here: &PreemptGuard) -> bool {
        let mut inside = self.inside.lock();
        let messages = self.waiting();
        // A backlog waits where thieves see it.
        if u64::from(messages) > sched::setting(Setting::ShareBacklog) {
            return false;
        }
        let is_unchecked = inside.queue.is_unchecked();
        let Some(held) = inside.queue.take_plain(|| Some(spare)) else { return false };
        let is_checked = !(self.gone.take() | is_unchecked);
        inside.most_messages = inside.most_messages.max(messages);
        self.set_waiting(0);
        self.note_first();
        // SAFETY: the mail was taken out for the worker on this core, which nobody else can do from now on.
        unsafe { self.hand.hold(held, is_checked, here) };
        true
    }

    /// It is in the lane of this core's worker, and something has come into its queue, which comes behind all that was sent to it there: moves that to `place`,
    /// where there is `room` for so many bytes. Returns where it ends there; nothing if it is too much, or not all of it was checked, or does not lie in one piece.
    pub(crate) fn pour_waiting(&self, place: NonNull<u8>, room: usize) -> Option<NonNull<u8>> {
        let mut inside = self.inside.lock();
        if self.gone.is_noted() || inside.queue.is_unchecked() {
            return None;
        }
        let end = inside.queue.pour(place, room)?;
        inside.most_messages = inside.most_messages.max(self.waiting());
        self.set_waiting(0);
        Some(end)
    }

    /// Takes what waits in hand for the worker on this core, in exchange for the hand's spare segment. Not for the worker's: what
    /// rests in hand gives none back, and with memory used up others would wait for one.
    pub(crate) fn hold_waiting(&self, here: &PreemptGuard) -> HoldResult {
        let mut inside = self.inside.lock();
        // It pairs with `done`, as in `gulp`.
        if !self.being_processed.is_free() {
            return HoldResult::Missed;
        }
        let messages = self.waiting();
        if messages == 0 {
            return HoldResult::Empty;
        }
        let is_unchecked = inside.queue.is_unchecked();
        let Some(held) = inside.queue.take_plain(|| self.hand.take_spare()) else { return HoldResult::Stays };
        self.being_processed.take();
        let is_checked = !(self.gone.take() | is_unchecked);
        inside.most_messages = inside.most_messages.max(messages);
        self.set_waiting(0);
        // SAFETY: the mail was taken out for the worker on this core, which nobody else can do from now on.
        unsafe { self.hand.hold(held, is_checked, here) };
        HoldResult::Held
    }

    /// What follows the batch, which is over, waits for its turn, and begins to wait now.
    pub(crate) fn follow_later(&self) {
        self.hand.await_turn();
        self.note_first();
    }

    /// Puts mail that waits in hand back in front of the queue, and puts the mailbox down. The caller is on the core that has
    /// it in hand, has taken it from the run list, and tells whoever should handle it.
    pub(crate) fn put_back(&self) {
        let mut inside = self.inside.lock();
        let held = self.hand.give_up();
        // SAFETY: it was in hand, so nothing of it was delivered, and it is sealed.
        let messages = unsafe { segment::estimate_chain(held.first, held.begin) };
        let emptied = if messages == 0 {
            // What was to be put down has come into the queue.
            Some(held.first)
        } else {
            inside.queue.settle_front();
            // SAFETY: as above; settled.
            let emptied = unsafe { inside.queue.prepend(held) };
            if self.hand.take_unchecked() {
                inside.queue.note_unchecked();
            }
            emptied
        };
        let waiting = self.waiting() + messages;
        self.set_waiting(waiting);
        if waiting > 0 {
            inside.queue.admit();
        }
        if let Some(mut emptied) = emptied {
            // SAFETY: empty; it is kept by its last reader, and if that is a suspended behaviour, freed by it.
            unsafe {
                if emptied.as_ref().release() {
                    emptied.as_mut().recycle();
                    self.hand.keep_larger(emptied);
                }
            }
        }
        self.being_processed.put_down();
    }

    /// Whether the caller, who has the mailbox's lock, may exchange the hand's spare segment: nobody has the mailbox in hand, or it is in hand here.
    pub(crate) fn may_keep_spare(&self, here: &PreemptGuard) -> bool {
        self.being_processed.is_free() || self.hand.is_here(here)
    }

    /// For whoever has counted a message and passed a full barrier since: whether a worker has a batch from here in
    /// hand, which will look again.
    #[inline(always)]
    pub(crate) fn is_left_to_holder(&self) -> bool {
        self.being_processed.is_left_to_holder()
    }
}
