//! How a lane is closed, and what waits in it is sorted into the hands of its mailboxes.
//!
//! To close it takes a bounded time, whatever waits there: the gates of its mailboxes are closed, and what is left of it is *unsorted*. Until that was brought to its mailboxes
//! nobody appends to them but by their queues, which come behind; and they are neither put down, nor is anything delivered that is theirs but for what
//! the lane was closed in. It is brought there a few at a time: in the worker's turn as soon as that has left the behaviour, or with
//! what it gives back (`put_down.rs`).

use core::cell::Cell;
use core::ptr::NonNull;

use super::{Lane, Worker, behind};
use crate::actor::mail::list::Waiting;
use crate::actor::mail::{Envelope, Segment};
use crate::sched;
use crate::sync::PreemptGuard;

/// A piece of a segment: where its envelopes begin and end.
type Piece = (NonNull<Envelope>, NonNull<Envelope>);

/// What is left of a closed lane.
pub(super) struct Unsorted {
    /// The mailboxes of the lane were not opened again.
    is_closed: Cell<bool>,
    /// In the segment in which it lay, behind the batch that it has become.
    first: Cell<Option<Piece>>,
    /// In the other one.
    then: Cell<Option<Piece>>,
    /// That segment, which is the batch's: read until all of the first piece was sorted.
    read: Cell<Option<NonNull<Segment>>>,
    /// The actors of its envelopes are to be looked at.
    is_unchecked: Cell<bool>,
}

impl Unsorted {
    pub(super) const fn new() -> Self {
        Self {
            is_closed: Cell::new(false),
            first: Cell::new(None),
            then: Cell::new(None),
            read: Cell::new(None),
            is_unchecked: Cell::new(false),
        }
    }

    /// The next envelope.
    fn next(&self) -> Option<NonNull<Envelope>> {
        self.first.get().or(self.then.get()).map(|(next, _)| next)
    }

    /// That has been sorted.
    fn advance(&self) {
        let from = if self.first.get().is_some() { &self.first } else { &self.then };
        if let Some((next, end)) = from.get() {
            let rest = behind(next);
            from.set((rest < end).then_some((rest, end)));
        }
    }
}

fn piece(begin: NonNull<u8>, end: NonNull<u8>) -> Option<Piece> {
    (begin < end).then_some((begin.cast(), end.cast()))
}

impl Lane {
    /// Whether it was closed, and something is to be sorted, or its mailboxes are to be opened again.
    pub(super) fn is_unsorted(&self) -> bool {
        self.unsorted.is_closed.get()
    }
}

impl Worker {
    /// The turn is to end behind the behaviour that runs in the lane. Whether it will. On the worker's core, where its turn was interrupted with preemption
    /// enabled.
    pub(in crate::actor::run::worker) fn cut_lane(&self) {
        let batch = self.batch();
        if batch.cut_lane() && !self.goes_on_elsewhere() {
            for mailbox in self.of_lane() {
                // SAFETY: of the lane, which is not closed; the place lives as long as the batch, and leads to where the lane ends.
                unsafe { mailbox.hand.move_in_lane(batch.extent().whole_end_cell(), self.limit_of_lane()) };
            }
        }
    }

    /// The lane has its end again, if it was cut. Whether it was. In the worker's turn.
    pub(super) fn mend_lane(&self) -> bool {
        let batch = self.batch();
        if !batch.is_lane() || !batch.mend_lane() {
            return false;
        }
        if !self.goes_on_elsewhere() {
            for mailbox in self.of_lane() {
                // SAFETY: as in `cut_lane`.
                unsafe { mailbox.hand.move_in_lane(batch.extent().end_cell(), self.limit_of_lane()) };
            }
        }
        true
    }

    fn limit_of_lane(&self) -> *mut u8 {
        self.batch().segment().map_or(core::ptr::null_mut(), super::segments::limit)
    }

    /// Closes the lane, if there is one: see above. On the worker's core within its turn, or instead of what was left of it.
    pub(in crate::actor::run) fn settle(&self, here: &PreemptGuard) {
        if self.batch().is_lane() {
            self.close_lane(here);
        }
    }

    #[cold]
    #[inline(never)]
    fn close_lane(&self, _here: &PreemptGuard) {
        let batch = self.batch();
        // SAFETY: the worker's turn, or what interrupts it on its core with preemption enabled, or comes after it.
        let private = unsafe { self.private() };
        let (segments, unsorted) = (&private.lane.segments, &private.lane.unsorted);
        batch.mend_lane();
        for mailbox in self.of_lane() {
            mailbox.hand.close_lane();
        }
        let Some(segment) = batch.segment() else { return };
        unsorted.is_closed.set(true);
        unsorted.is_unchecked.set(batch.is_unchecked());
        let elsewhere = segments.other().zip(segments.end_elsewhere());
        unsorted.then.set(elsewhere.and_then(|(other, end)| piece(Segment::begin(other), end)));
        let Some(current) = batch.current() else {
            // The loop finds that all was delivered.
            return batch.end_lane(None);
        };
        let begin = behind(current).cast();
        unsorted.first.set(piece(begin, batch.end()));
        // SAFETY: being delivered, or next; its head is never changed.
        let mailbox = unsafe { current.as_ref() }.mailbox();
        debug_assert!(mailbox.hand.is_of_lane(), "a mailbox has left the lane, and has mail there");
        segments.give_current();
        unsorted.read.set(Some(segment));
        // SAFETY: the segment is the batch's, and its mailbox of the lane, which is closed; what is behind the current envelope is moved away.
        unsafe {
            segment.as_ref().share();
            (*segment.as_ptr()).set_end(begin);
            mailbox.hand.follow_lane(segment);
        }
        private.is_listed.set(true);
        batch.end_lane(Some((mailbox, begin)));
    }

    /// Whether a lane was closed, and its mailboxes are not open again. On the worker's core.
    pub(in crate::actor::run::worker) fn has_unsorted(&self) -> bool {
        // SAFETY: as in `close_lane`.
        unsafe { self.private() }.lane.is_unsorted()
    }

    /// Brings one message of a closed lane to its mailbox, or opens all of them again if there is none. Whether there was anything to do. On the worker's core in its turn, or
    /// instead of what was left of it.
    #[inline(always)]
    pub(in crate::actor::run::worker) fn sort_one(&self, here: &PreemptGuard) -> bool {
        // SAFETY: as in `close_lane`.
        let lane = &unsafe { self.private() }.lane;
        lane.is_unsorted() && self.sort_next(lane, here)
    }

    #[cold]
    #[inline(never)]
    fn sort_next(&self, lane: &Lane, here: &PreemptGuard) -> bool {
        if let Some(envelope) = lane.unsorted.next() {
            // SAFETY: not delivered, and not looked at again.
            if unsafe { self.sort(lane, envelope, here) } {
                lane.unsorted.advance();
            }
            return true;
        }
        lane.unsorted.is_closed.set(false);
        if let Some(mut segment) = lane.unsorted.read.take() {
            // SAFETY: it was shared for this. If nobody else reads it, nobody else has it.
            unsafe {
                if segment.as_ref().release() {
                    segment.as_mut().recycle();
                    if !lane.takes_back(segment) {
                        Segment::free(segment);
                    }
                }
            }
        }
        for mailbox in self.of_lane() {
            mailbox.hand.reopen();
            // Mail that has come into the queue meanwhile waits no longer than what rested.
            if mailbox.waiting() > 0 {
                mailbox.hand.wake_from_rest(mailbox, here);
            }
        }
        true
    }

    /// All of a closed lane goes to its mailboxes, until the turn is to end. In the worker's turn, without a behaviour.
    pub(super) fn sort_in_turn(&self) {
        self.in_steps(&mut |here| !sched::is_exhausted() && self.sort_one(here));
    }

    /// Puts an envelope of the lane's behind what its mailbox has in hand, which is listed if it rested. Whether there was room, and there always is.
    ///
    /// # Safety
    /// The envelope was not delivered, and is not looked at again there.
    unsafe fn sort(&self, lane: &Lane, envelope: NonNull<Envelope>, here: &PreemptGuard) -> bool {
        // SAFETY: by contract; measuring changes nothing.
        let (mailbox, bytes) = unsafe { (envelope.as_ref().mailbox(), Envelope::measure(envelope)) };
        // SAFETY: of the closed lane; a segment of the reserve is empty, and longer than any envelope.
        let place = unsafe { mailbox.hand.sort_in(bytes, || lane.segments.take_of_reserve()) };
        debug_assert!(mailbox.hand.is_of_lane(), "a mailbox has left the lane, and has mail there");
        let Some((place, is_first)) = place else { return false };
        if lane.unsorted.is_unchecked.get() {
            mailbox.hand.note_unchecked(here);
        }
        // SAFETY: so much room is there, and the envelope may be moved, because whoever has it has its message.
        unsafe { place.copy_from_nonoverlapping(envelope.cast(), bytes) };
        if is_first {
            // It waits from now on.
            mailbox.note_first();
            self.run_list.push(Waiting::Held(mailbox));
        }
        true
    }
}
