//! The run list: what waits for its turn in the order in which it came. Those are mailboxes in hand, with mail there, and guests (`hosting.rs`).
//!
//! A behaviour that sends the first message into a mailbox whose worker is its own, or is idle, takes the mailbox in hand for its
//! own worker: from then on it is being processed by that worker, and senders on that core add to it without a lock
//! (`mail/hand.rs`). The worker finds it here, and delivers without a gulp.
//!
//! - The sender holds the mailbox's lock, so it excludes other workers as a gulp does.
//! - It is a part of the worker's turn, so the worker will look here before it sleeps.
//! - When all was delivered, the mailbox rests in hand: the next message of this turn needs no lock either. Mail that comes from
//!   elsewhere meanwhile waits for the end of the turn, or until the worker has nothing else to do, which is soon.
//! - Mail that has come into the queue while its batch was delivered is taken in hand as well, behind what is listed by then.
//! - No more than [`MOST_IN_HAND`] mailboxes are in hand at once; others take the ordinary path. So each loop here ends soon.
//! - Where a turn ends early, by its budget, a split or a crash, what is listed goes back into the mailboxes' queues, in front, and is
//!   announced as mail that has just come. So no process that has the core next keeps others from it for long (`put_down.rs`).
//! - So between turns nothing rests, and nothing in the list is in hand, but while the worker owes that, or a suspended behaviour has a turn of its
//!   own (`piece.rs`).
//! - Within a turn, what waits too long goes back, too (`surplus.rs`).

use core::ptr::NonNull;

use super::{HINTS, Private, Worker};
use crate::actor::mail::list::{End, Resting, Waiting};
use crate::actor::mail::mailbox::HoldResult;
use crate::actor::mail::{Envelope, Mailbox};
use crate::actor::run::batch::Batch;
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;
use crate::{sched, stats};

/// How many mailboxes a worker has in hand at once, at most.
pub(super) const MOST_IN_HAND: usize = 128;

/// With fewer messages taking a mailbox in hand costs more than what senders save.
const MANY: u32 = 8;

impl Worker {
    /// Whether the caller, on this worker's core, is a part of its turn: a behaviour.
    #[inline(always)]
    pub(in crate::actor::run) fn is_delivering(&self, _here: &PreemptGuard) -> bool {
        // SAFETY: set at the start and by `detach` only, both to live batches; on this core it changes between turns, or by
        // an interrupt that finds preemption enabled.
        unsafe { &*self.batch.load(Ordering::Relaxed) }.is_armed()
    }

    /// Whether the worker may have one more mailbox in hand. On its core, with preemption off.
    #[inline(always)]
    pub(in crate::actor::run) fn has_room_in_hand(&self) -> bool {
        self.in_hand.get() < MOST_IN_HAND
    }

    /// One mailbox less is in hand. On the worker's core, with preemption off.
    #[inline(always)]
    pub(super) fn one_put_down(&self) {
        self.in_hand.set(self.in_hand.get() - 1);
    }

    /// A mailbox was taken in hand for this worker, on its core, within its turn or that of a suspended behaviour. There was room.
    #[inline(always)]
    pub(in crate::actor::run) fn list(&self, mailbox: &Mailbox, _here: &PreemptGuard) {
        let in_hand = self.in_hand.get() + 1;
        self.in_hand.set(in_hand);
        self.statistics.most_in_hand.raise(in_hand as u64);
        // SAFETY: the list is the worker's, which ends after all mailboxes were put down.
        unsafe { mailbox.hand.set_run_list(&self.run_list) };
        self.run_list.push(Waiting::Held(mailbox.for_ever()));
    }

    /// A round begins: takes what waits in its mailboxes in hand where there is much of it, behind what is there, so that from now on
    /// senders on this core add to it without a lock. One that waits alone is gulped as it is, and so is what cannot be taken. In
    /// the worker's turn.
    #[inline(always)]
    pub(super) fn list_round(&self, private: &Private) {
        let round = private.round.get();
        // Mostly it is one, and then something may wait for that.
        if self.range.slots > HINTS || (round & round.wrapping_sub(1) == 0 && !self.run_list.any()) {
            return;
        }
        self.list_several(private, round);
    }

    #[inline(never)]
    fn list_several(&self, private: &Private, round: u64) {
        let mut left = round;
        // Somebody urgent may wait: what is left stays in the round.
        while left != 0 && !sched::is_exhausted() {
            let offset = left.trailing_zeros() as usize;
            left &= left - 1;
            if offset >= self.range.slots {
                break;
            }
            let here = PreemptGuard::new();
            if !self.has_room_in_hand() {
                return;
            }
            let mailbox = self.own(offset);
            // Whoever has it in hand tells of its mail.
            if mailbox.waiting() < MANY && !mailbox.is_being_processed() {
                continue;
            }
            match mailbox.hold_waiting(&here) {
                HoldResult::Held => self.list(mailbox, &here),
                HoldResult::Empty | HoldResult::Missed => {}
                HoldResult::Stays => continue,
            }
            private.round.set(private.round.get() & !(1 << offset));
        }
    }

    /// Takes out what has waited longest, if that is to have its turn now: when something else waits, only what was listed when the
    /// pass began, unless the turn is to end (`is_last`). In the worker's turn, without a batch.
    #[inline(always)]
    pub(super) fn next_listed(&self, private: &Private, is_last: bool) -> Option<Waiting> {
        // Relaxed: a hint that comes later is found the next time.
        let has_others = private.round.get() != 0 || self.hints.load(Ordering::Relaxed) != 0;
        if has_others && !is_last && private.pass_end.get() == End::NONE {
            return None;
        }
        let _here = PreemptGuard::new();
        // Until now an interrupt may have let all of it go.
        let next = self.run_list.pop()?;
        if private.pass_end.get().is(next) {
            private.pass_end.set(End::NONE);
        }
        Some(next)
    }

    /// Begins a batch with a mailbox that was listed, and in hand. In the worker's turn.
    #[inline(always)]
    pub(super) fn begin_listed(&self, mailbox: &'static Mailbox, private: &Private, batch: &Batch) {
        let here = PreemptGuard::new();
        self.begin(mailbox, batch, &here);
        self.set_in_batch(true);
        private.is_listed.set(true);
    }

    /// As [`Self::begin_listed`], right after another batch of the list, if nothing else waits, the turn may go on, and the mail
    /// is not to be timed. Returns what [`Batch::begin_held`] does, if it has begun.
    #[inline(always)]
    pub(super) fn begin_next_listed(
        &self,
        private: &Private,
        batch: &Batch,
        budget: u64,
        here: &PreemptGuard,
    ) -> Option<Option<NonNull<Envelope>>> {
        // Relaxed: as in `next_listed`.
        let others = private.round.get() | self.hints.load(Ordering::Relaxed);
        if others != 0 || budget == 0 || sched::is_exhausted() {
            return None;
        }
        let mailbox = self.run_list.first().and_then(Waiting::held).filter(|mailbox| !mailbox.is_tried())?;
        self.run_list.pop();
        // Whoever comes now waits for none of those that are listed: as nobody else was waiting, the pass was over.
        private.pass_end.set(End::NONE);
        Some(self.begin(mailbox, batch, here))
    }

    /// Begins a batch with a mailbox that was in the list, as [`Batch::begin_held`].
    #[inline(always)]
    fn begin(
        &self,
        mailbox: &'static Mailbox,
        batch: &Batch,
        _here: &PreemptGuard,
    ) -> Option<NonNull<Envelope>> {
        // SAFETY: the list is this worker's, and so are the mailboxes in it, with mail in hand.
        let first = unsafe { batch.begin_held(mailbox, false) };
        if stats::timing() {
            self.statistics.mail_latency.record(mailbox.waited_ticks());
        }
        first
    }

    /// All of a mailbox's mail in hand was delivered, and the batch came from the list: keeps it in hand, at rest.
    #[inline(always)]
    pub(super) fn let_rest(&self, mailbox: &Mailbox, _here: &PreemptGuard) {
        // SAFETY: this is the worker's turn. A batch from the list has a segment of its own, and an open gate.
        if unsafe { mailbox.hand.rest() } {
            self.resting.push(Resting(mailbox.for_ever()));
        }
    }
}
