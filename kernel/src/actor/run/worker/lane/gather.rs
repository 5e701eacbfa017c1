//! What goes into the lane besides what its own behaviours send to mailboxes in it: mail in the run list, and mail that has come from elsewhere.
//!
//! In the worker's turn, without a behaviour. Preemption is enabled between two mailboxes, and whatever interrupts may close the lane there.

use core::ptr::NonNull;

use super::segments;
use super::{MOST_MAILBOXES, MOST_POURED_BYTES, Private, Worker};
use crate::actor::mail::Mailbox;
use crate::actor::mail::list::{End, Resting};
use crate::actor::mail::mailbox::{FIRST_SEGMENT_BYTES, HoldResult};
use crate::actor::run::batch::Batch;
use crate::actor::run::worker::HINTS;
use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::sync::PreemptGuard;

/// So much goes from a queue into the lane, at most: it is moved with the lock held. More is a backlog, and waits where thieves see it.
const MOST_LOCKED_BYTES: usize = 2 * FIRST_SEGMENT_BYTES;

impl Worker {
    /// Whether all that is in the run list may go into the lane, if not at once: it is mail in hand that was checked, in one piece, and not much. And how many bytes.
    pub(super) fn pourable(&self) -> Option<usize> {
        let mut all = 0;
        for entry in self.run_list.iter() {
            let mailbox = entry.held().filter(|&mailbox| may_be_poured(mailbox))?;
            all += mailbox.hand.pourable_bytes().filter(|&bytes| bytes <= MOST_POURED_BYTES)?;
        }
        Some(all)
    }

    /// What is in the run list goes into the lane. Whether all of it did, and the lane is open.
    pub(super) fn refill(
        &self,
        private: &Private,
        batch: &Batch,
        mut here: PreemptGuard,
    ) -> (PreemptGuard, bool) {
        // As in `begin_next_listed`.
        private.pass_end.set(End::NONE);
        loop {
            if !batch.is_lane() || self.in_hand.get() > MOST_MAILBOXES {
                return (here, false);
            }
            let Some(entry) = self.run_list.first() else { return (here, true) };
            let mailbox = entry.held().filter(|&mailbox| may_be_poured(mailbox));
            if !mailbox.is_some_and(|mailbox| self.pour(mailbox, batch, &here)) {
                return (here, false);
            }
            here = pause(here);
        }
    }

    /// The first in the run list goes into the lane, if there is room. Whether it did.
    fn pour(&self, mailbox: &'static Mailbox, batch: &Batch, here: &PreemptGuard) -> bool {
        let Some((end_cell, place, limit)) = self.end_of_lane(batch) else { return false };
        let room = limit.addr().saturating_sub(place.as_ptr().addr());
        if mailbox.hand.pourable_bytes().is_none_or(|bytes| bytes > room.min(MOST_POURED_BYTES)) {
            return false;
        }
        self.run_list.pop();
        // SAFETY: the list is this worker's, and so are the mailboxes in it, with mail that may be poured; there is room.
        let (end, is_first) = unsafe { mailbox.hand.pour(place) };
        if is_first {
            self.resting.push(Resting(mailbox));
        }
        end_cell.store(end.as_ptr(), Ordering::Relaxed);
        if mailbox.hand.may_enter_lane(here) {
            // SAFETY: it rests in this worker's hand. The lane's end lives as long as the batch, or the worker, and it is closed before that is
            // anything else.
            unsafe { mailbox.hand.enter_lane(end_cell, limit) };
        }
        true
    }

    /// Mail from elsewhere comes into the lane, or into the run list: that of mailboxes in the lane, which nobody else takes, and of those that were pointed out, of which what
    /// cannot be taken in hand stays in the round. Whether nothing has to wait for the end of the lane.
    pub(super) fn gather(
        &self,
        private: &Private,
        batch: &Batch,
        mut here: PreemptGuard,
    ) -> (PreemptGuard, bool) {
        let mut is_all = true;
        // Nobody changes the list while the lane is open, but for what closes that.
        let mut next = self.resting.first();
        while let Some(entry) = next.filter(|_| is_all && batch.is_lane()) {
            let Resting(mailbox) = entry;
            if mailbox.waiting() > 0 {
                is_all = self.gather_from(mailbox, batch, &here);
                here = pause(here);
            }
            next = self.resting.after(entry);
        }
        // Relaxed and acquire: as in `next_round`.
        if self.hints.load(Ordering::Relaxed) != 0 {
            private.round.set(private.round.get() | self.hints.swap(0, Ordering::Acquire));
        }
        let mut left = if self.range.slots > HINTS { 0 } else { private.round.get() };
        while left != 0 && batch.is_lane() && self.in_hand.get() < MOST_MAILBOXES {
            let offset = left.trailing_zeros() as usize;
            left &= left - 1;
            let stays = offset < self.range.slots && !self.gather_pointed_out(self.own(offset), &here);
            if !stays {
                private.round.set(private.round.get() & !(1 << offset));
            }
            here = pause(here);
        }
        let is_all = is_all && private.round.get() == 0;
        (here, is_all)
    }

    /// Mail has come into the queue of a mailbox that rested: it goes into the lane, if that is where the mailbox is. Whether it did.
    #[inline(never)]
    fn gather_from(&self, mailbox: &Mailbox, batch: &Batch, here: &PreemptGuard) -> bool {
        let Some((end_cell, place, limit)) = self.end_of_lane(batch) else { return false };
        let room = limit.addr().saturating_sub(place.as_ptr().addr()).min(MOST_LOCKED_BYTES);
        if !mailbox.hand.is_in_lane(here) {
            return false;
        }
        let end = mailbox.pour_waiting(place, room);
        end.inspect(|end| end_cell.store(end.as_ptr(), Ordering::Relaxed)).is_some()
    }

    /// Where the lane's mail ends: the cell that says so, what it says, and where the room ends.
    fn end_of_lane<'a>(&'a self, batch: &'a Batch) -> Option<(&'a AtomicPtr<u8>, NonNull<u8>, *mut u8)> {
        let (cell, limit) = match self.room_elsewhere(batch) {
            Some(room) if self.goes_on_elsewhere() => (room.end_cell, room.limit),
            _ => (batch.extent().end_cell(), segments::limit(batch.segment()?)),
        };
        Some((cell, NonNull::new(cell.load(Ordering::Relaxed))?, limit))
    }

    /// Whether what waits in a mailbox was taken in hand, or nothing waits there for this worker.
    #[inline(never)]
    fn gather_pointed_out(&self, mailbox: &'static Mailbox, here: &PreemptGuard) -> bool {
        // Whoever has it in hand tells of its mail.
        if mailbox.waiting() == 0 || mailbox.is_being_processed() {
            return true;
        }
        match mailbox.hold_waiting(here) {
            HoldResult::Held => self.list(mailbox, here),
            HoldResult::Empty | HoldResult::Missed => {}
            HoldResult::Stays => return false,
        }
        true
    }
}

/// What is to interrupt this does so now.
fn pause(here: PreemptGuard) -> PreemptGuard {
    drop(here);
    PreemptGuard::new()
}

/// Whether what is in hand of a mailbox, which waits in the run list, may go into the lane, if it is [in one piece](crate::actor::mail::hand::Hand::pourable_bytes): nothing has come into its queue.
fn may_be_poured(mailbox: &Mailbox) -> bool {
    mailbox.waiting() == 0 && !mailbox.is_tried()
}
