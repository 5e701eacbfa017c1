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
//! - Between turns nothing rests, and nothing in the list is in hand but while a suspended behaviour has a turn of its own (`piece.rs`). Where a turn ends early, by its budget, a split or a crash, what is
//!   listed goes back into the mailboxes' queues, in front, and is announced as mail that has just come. So no process that
//!   has the core next, for however long, keeps others from it.
//! - Within a turn, what waits too long goes back, too (`surplus.rs`).
//! - What is done to all that is in hand is done to a few at a time, and in a turn preemption is enabled in between ([`AT_ONCE`]). An
//!   interrupt there finds no behaviour that could be suspended, and gives away nothing (`gives`): so nobody else changes the lists meanwhile.

use core::ptr::NonNull;

use super::{HINTS, Private, Worker};
use crate::actor::mail::list::{End, Resting, Waiting};
use crate::actor::mail::mailbox::HoldResult;
use crate::actor::mail::{Envelope, Mailbox, Segment};
use crate::actor::run::batch::Batch;
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;
use crate::{sched, stats};

/// How many mailboxes a worker has in hand at once, at most. Where a behaviour was suspended all of them are given back in the core's loop.
pub(super) const MOST_IN_HAND: usize = 128;

/// How many of those are dealt with before preemption is enabled for a moment, where the caller has not disabled it: to give back so many
/// takes less than 2,000 instructions.
const AT_ONCE: usize = 8;

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
        while left != 0 {
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
    /// pass began. In the worker's turn, without a batch.
    #[inline(always)]
    pub(super) fn next_listed(&self, private: &Private) -> Option<Waiting> {
        // Relaxed: a hint that comes later is found the next time.
        let has_others = private.round.get() != 0 || self.hints.load(Ordering::Relaxed) != 0;
        if has_others && private.pass_end.get() == End::NONE {
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

    /// Does `one` with preemption disabled until it has nothing more to do.
    fn in_steps(&self, mut one: impl FnMut(&PreemptGuard) -> bool) {
        self.gives.set(true);
        loop {
            let here = PreemptGuard::new();
            for _ in 0..AT_ONCE {
                if !one(&here) {
                    return self.gives.set(false);
                }
            }
        }
    }

    /// Puts down what rests in hand. Whoever gives away what is in hand does this first, because a mailbox that is in the list of
    /// another worker must not be in this one's. As all that gives back what is in hand: on the worker's core, in its turn, or instead of
    /// what was left of it.
    #[cold]
    #[inline(never)]
    pub(super) fn put_resting_down(&self) {
        self.put_resting_down_and(|mailbox, here| self.executor.notify(mailbox, here));
    }

    /// As [`Self::put_resting_down`], between two things that are done with preemption disabled.
    #[cold]
    #[inline(never)]
    pub(super) fn put_resting_down_between(&self, here: PreemptGuard) -> PreemptGuard {
        drop(here);
        self.put_resting_down();
        PreemptGuard::new()
    }

    /// As [`Self::put_resting_down`], behind a long behaviour: mail that has come goes to the owners.
    #[cold]
    pub(super) fn send_resting_home(&self) {
        self.put_resting_down_and(|mailbox, _| self.executor.send_home(mailbox, self));
    }

    fn put_resting_down_and(&self, tell: impl Fn(&Mailbox, &PreemptGuard)) {
        self.settle(&PreemptGuard::new());
        self.in_steps(|here| {
            let Some(Resting(mailbox)) = self.resting.pop() else { return false };
            if mailbox.hand.end_rest() {
                self.one_put_down();
                // What it has in hand may have come in exchange for the worker's spare segment. There must be one when memory is used
                // up, for mailboxes that have none.
                // SAFETY: the worker's turn, or what interrupts it in a behaviour, or comes after it.
                let spare = unsafe { &self.private().spare };
                if spare.get().is_none() {
                    let fresh = Segment::new(self.executor.segment_bytes);
                    // Nobody else takes that one before the mailbox is put down.
                    spare.set(fresh.or_else(|| mailbox.hand.take_spare()));
                }
                if mailbox.done() {
                    tell(mailbox, here);
                }
            }
            true
        });
    }

    /// The turn ends: what is in hand but for the batch goes back, and its workers are told.
    #[inline(always)]
    pub(in crate::actor::run) fn empty_hand(&self) {
        if self.resting.any() {
            self.put_resting_down();
        }
        if self.run_list.any() {
            self.put_list_back();
        }
    }

    #[cold]
    #[inline(never)]
    fn put_list_back(&self) {
        // SAFETY: the turn ends here, or was interrupted in a behaviour, or is gone; or a suspended behaviour's does, in which this has none.
        let private = unsafe { self.private() };
        self.through_the_list(|entry, is_in_pass, here| {
            match entry {
                Waiting::Held(mailbox) => {
                    let place = mailbox.place();
                    // What has not had its turn in this pass stays in it, in the round or as a guest, or who is pointed out first, or
                    // invited, would always come first.
                    if is_in_pass && usize::from(place.worker) == self.index && self.range.slots <= HINTS {
                        private.round.set(private.round.get() | 1 << (usize::from(place.offset) % HINTS));
                    }
                    self.put_back(mailbox);
                    self.executor.notify(mailbox, here);
                    true
                }
                Waiting::Guest(_) => false,
            }
        });
    }

    /// Goes once through what is listed: `leaves` says of each, and of whether it is to have its turn in this pass, whether it has gone.
    fn through_the_list(&self, mut leaves: impl FnMut(Waiting, bool, &PreemptGuard) -> bool) {
        // SAFETY: by what the callers say, this is the worker's turn, or that is interrupted on its core with preemption enabled, or over.
        let private = unsafe { self.private() };
        let begun = PreemptGuard::new();
        self.gives.set(true);
        let pass_end = private.pass_end.replace(End::NONE);
        let mut is_in_pass = pass_end != End::NONE;
        // Who is told of mail may list it here again, behind what is listed now.
        let last = self.run_list.end();
        drop(begun);
        self.in_steps(|here| {
            let Some(entry) = self.run_list.pop() else { return false };
            if !leaves(entry, is_in_pass, here) {
                self.run_list.push(entry);
                if is_in_pass {
                    private.pass_end.set(End::behind(entry));
                }
            }
            is_in_pass &= !pass_end.is(entry);
            !last.is(entry)
        });
    }

    /// Puts back what is in hand of a mailbox that is not listed any more.
    fn put_back(&self, mailbox: &Mailbox) {
        mailbox.put_back();
        self.one_put_down();
    }

    /// What is in hand and listed, and `may_leave`, given how many of those come before it and how many there are, goes to other
    /// workers.
    pub(super) fn give_listed(&self, may_leave: impl Fn(&Mailbox, usize, usize) -> bool) {
        self.put_resting_down();
        let listed = PreemptGuard::new();
        let held = self.run_list.iter().filter_map(Waiting::held).count();
        drop(listed);
        let mut before = 0;
        self.through_the_list(|entry, _, _| {
            let leaving = entry.held().filter(|mailbox| may_leave(mailbox, before, held));
            before += usize::from(entry.held().is_some());
            if let Some(mailbox) = leaving {
                self.put_back(mailbox);
                self.executor.send_home(mailbox, self);
            }
            leaving.is_some()
        });
    }
}
