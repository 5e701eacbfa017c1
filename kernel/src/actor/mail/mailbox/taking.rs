//! Taking mail out of a mailbox, a batch at a time, putting the mailbox down afterwards, and taking back what was not delivered.
//!
//! When a worker gulps, and what becomes of a batch, is decided in `run/worker/gulping.rs`. Mail that a worker has
//! in hand before it is a batch is in [`holding`](super::holding).

use core::cell::Cell;
use core::ptr::NonNull;

use super::{Locked, Mailbox};
use crate::actor::mail::copy_queue::Gulp;
use crate::actor::mail::segment::{self, Segment};

/// So many messages that come back are counted anew, with debug assertions.
const FEW: u32 = 16;

/// Mail that was taken out, or has come into hand beside the queue.
#[derive(Debug)]
pub(crate) struct Taken {
    pub gulp: Gulp,
    pub messages: u32,
    /// Whether each envelope's actor must be looked at: `hand/checks.rs`.
    pub is_unchecked: bool,
}

/// What an attempt to gulp came to.
#[derive(Debug)]
pub(crate) enum GulpResult {
    /// Mail, and the mailbox is being processed from now on.
    Taken(Taken),
    /// Nothing was waiting.
    Empty,
    /// Another worker is handling a batch from here.
    Missed,
    /// There is no segment to leave in exchange.
    NoSegment,
}

impl Mailbox {
    /// Takes all that waits, in exchange for the segment in the mailbox's hand or, if there is none, for `spare`.
    #[inline(always)]
    pub(crate) fn gulp(&self, spare: &Cell<Option<NonNull<Segment>>>) -> GulpResult {
        let mut inside = self.inside.lock();
        // Pairs with `done`, so that this worker sees what the actors wrote while
        // another worker handled their last batch. The lock alone would not do: that worker never took it
        // after its batch.
        if !self.being_processed.is_free() {
            return GulpResult::Missed;
        }
        let messages = self.waiting();
        if messages == 0 {
            return GulpResult::Empty;
        }
        let Some(spare) = self.hand.take_spare().or_else(|| spare.take()) else {
            return GulpResult::NoSegment;
        };
        self.being_processed.take();
        inside.most_messages = inside.most_messages.max(messages);
        GulpResult::Taken(self.take_out(inside, spare))
    }

    /// Takes what has come while its batch was handled, in exchange for `spare`, without putting it down. The
    /// caller has handled the batch, and has seen mail.
    #[inline(always)]
    pub(crate) fn gulp_again(&self, spare: NonNull<Segment>) -> Taken {
        let mut inside = self.inside.lock();
        // Nobody else takes messages out while it is being processed, but a bound that drops the oldest.
        let messages = self.waiting();
        inside.most_messages = inside.most_messages.max(messages);
        self.take_out(inside, spare)
    }

    /// Takes all that waits.
    #[inline(always)]
    fn take_out(&self, mut inside: Locked<'_>, spare: NonNull<Segment>) -> Taken {
        let messages = self.waiting();
        self.count_taken(messages);
        let is_unchecked = self.gone.take() | inside.queue.is_unchecked();
        if inside.queue.is_careful() {
            let gulp = self.take_out_carefully(inside, spare);
            return Taken { gulp, messages, is_unchecked };
        }
        let gulp = inside.queue.gulp_plain(spare);
        self.set_waiting(0);
        Taken { gulp, messages, is_unchecked }
    }

    /// As [`Self::take_out`], of a mailbox that has a bound: whoever waits for room is told, after the lock.
    #[cold]
    #[inline(never)]
    fn take_out_carefully(&self, mut inside: Locked<'_>, spare: NonNull<Segment>) -> Gulp {
        let gulp = inside.queue.gulp(spare);
        self.set_waiting(0);
        self.for_ever().waiting_senders.tell(&inside.unlock());
        gulp
    }

    /// The batch was handled. Whether there is mail again, for which nobody was told.
    #[inline(always)]
    pub(crate) fn done(&self) -> bool {
        // Hands over what the actors wrote; pairs with `gulp`.
        self.being_processed.put_down();
        self.waiting() > 0
    }

    /// Takes back messages that were taken from here for an actor that has ended since: they are dropped where the
    /// mailbox's worker meets them or, when it has closed, at the end of its executor. Returns the lock if that worker
    /// must be told, before it is given up.
    ///
    /// The caller says how many there are, because counting them takes as long as there are many. No estimate will do: a bound is held to
    /// what waits.
    ///
    /// # Safety
    /// The chain is the caller's, who gives it up, nothing in it was delivered, and there are so many messages in it.
    #[cold]
    #[must_use]
    pub(crate) unsafe fn take_back(&self, chain: Gulp, messages: u32) -> Option<Locked<'_>> {
        // Not of long ones: counting takes as long as there are many.
        // SAFETY: by contract.
        debug_assert!(messages > FEW || messages == unsafe { segment::count_chain(chain.first, chain.head) });
        if messages == 0 {
            // SAFETY: nothing is in it.
            unsafe { segment::free_chain(chain.first) };
            return None;
        }
        // SAFETY: by contract.
        unsafe { Segment::set_mail_begin(chain.first, chain.head) };
        let mut inside = self.inside.lock();
        // SAFETY: by contract, and noted.
        unsafe { inside.queue.append(chain.first) };
        inside.queue.note_unchecked();
        let before = self.waiting();
        self.set_waiting(before + messages);
        inside.queue.admit();
        if before > 0 || inside.closed {
            return None;
        }
        self.note_first();
        Some(inside)
    }

    /// Puts a segment in front of all that waits, whatever the bound says. Returns the lock if the mailbox's worker must be told,
    /// before it is given up; the segment, if nothing is accepted any more.
    ///
    /// # Safety
    /// The segment is the caller's, who gives it up; it has one envelope, sealed and not delivered.
    #[cold]
    pub(crate) unsafe fn put_in_front(
        &self,
        segment: NonNull<Segment>,
    ) -> Result<Option<Locked<'_>>, NonNull<Segment>> {
        let mut inside = self.inside.lock();
        if inside.closed {
            return Err(segment);
        }
        inside.queue.settle_front();
        // SAFETY: by contract; settled.
        unsafe { inside.queue.put_in_front(segment) };
        // Nobody has looked whether its actor is attached.
        inside.queue.note_unchecked();
        let before = self.waiting();
        self.set_waiting(before + 1);
        inside.queue.admit();
        if before > 0 {
            return Ok(None);
        }
        self.note_first();
        Ok(Some(inside))
    }
}
