//! What a worker has in hand (`run_list.rs`) goes back into the mailboxes' queues, or to other workers.
//!
//! - It is done to a few mailboxes at a time, and in a turn preemption is enabled in between ([`AT_ONCE`]). An interrupt there finds no behaviour
//!   that could be suspended, and gives away nothing ([`Worker::is_putting_down`]): so nobody else changes the lists meanwhile.
//! - Where that can wait, it is left off as soon as the turn is to end.
//! - At a turn's end, if it is more than a few, the worker *owes* it: the core's loop has it give back a few at a time, and lets what is more urgent
//!   have turns in between (`sched/run/give_back.rs`). Until then nobody else has those mailboxes. The worker's own next turn, and one of a piece
//!   of its, first does the rest.

use super::{HINTS, Worker};
use crate::actor::mail::list::{End, Resting, Waiting};
use crate::actor::mail::{Mailbox, Segment};
use crate::sched::{self, ProcessRef};
use crate::sync::PreemptGuard;

/// How many mailboxes are dealt with before preemption is enabled for a moment, where the caller has not disabled it: to give back so many
/// takes less than 2,000 instructions.
const AT_ONCE: usize = 8;

/// Who hears that a mailbox was put down with mail.
#[derive(Clone, Copy)]
enum Told {
    /// Who has its mail next: its owner or this worker.
    Next,
    Owner,
}

/// How far a look through the run list has come.
#[derive(Clone, Copy)]
pub(super) struct Look {
    /// It ends there. Whoever is told of mail may list that here again, behind.
    last: End,
    /// The pass ended there, when it began.
    pass_end: End,
    /// That is still to come.
    is_in_pass: bool,
}

impl Worker {
    /// Whether the lists of what is in hand are being emptied, though preemption may be enabled or another has a turn. On its core.
    pub(super) fn is_putting_down(&self) -> bool {
        self.gives.get() || self.owes.get()
    }

    /// Does `one` with preemption disabled until it has nothing more to do.
    pub(super) fn in_steps(&self, one: &mut dyn FnMut(&PreemptGuard) -> bool) {
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
    /// another worker must not be in this one's. In the worker's turn, without a behaviour.
    #[cold]
    #[inline(never)]
    pub(super) fn put_resting_down(&self) {
        self.put_down_until(Told::Next, |_| false);
    }

    /// As [`Self::put_resting_down`], until the turn is to end.
    #[cold]
    pub(super) fn put_resting_down_in_turn(&self) {
        self.put_down_until(Told::Next, |_| sched::is_exhausted());
    }

    /// As [`Self::put_resting_down`], between two things that are done with preemption disabled.
    #[cold]
    #[inline(never)]
    pub(super) fn put_resting_down_between(&self, here: PreemptGuard) -> PreemptGuard {
        drop(here);
        self.put_resting_down();
        PreemptGuard::new()
    }

    #[inline(never)]
    fn put_down_until(&self, told: Told, stops: fn(&PreemptGuard) -> bool) {
        self.settle(&PreemptGuard::new());
        self.in_steps(&mut |here| !stops(here) && (self.sort_one(here) || self.put_one_down(told, here)));
    }

    /// Puts down one of those that rest. Whether there was one.
    #[inline(always)]
    fn put_one_down(&self, told: Told, here: &PreemptGuard) -> bool {
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
                self.tell(mailbox, told, here);
            }
        }
        true
    }

    fn tell(&self, mailbox: &Mailbox, told: Told, here: &PreemptGuard) {
        match told {
            Told::Next => self.executor.notify(mailbox, here),
            Told::Owner => self.executor.send_home(mailbox, self),
        }
    }

    /// The turn ends, or is gone: what is in hand but for the batch goes back. On the worker's core, in its turn, or instead of what was left of
    /// it.
    #[inline(always)]
    pub(in crate::actor::run) fn leave_hand(&self) {
        if self.in_hand.get() > AT_ONCE || self.batch().is_lane() || self.has_unsorted() {
            self.owe_hand();
        } else {
            self.empty_hand();
        }
    }

    #[cold]
    #[inline(never)]
    fn owe_hand(&self) {
        let here = PreemptGuard::new();
        self.settle(&here);
        self.owes.set(true);
        let is_put_off = self.process().is_some_and(|process| sched::give_back_later(process, &here));
        drop(here);
        if !is_put_off {
            self.pay();
        }
    }

    /// A turn begins, of its own or of a piece of its: what it owes goes back first.
    #[inline(always)]
    pub(super) fn pay_first(&self) {
        if self.owes.get() {
            self.pay();
            self.process().inspect(|process| sched::given_back(process, &PreemptGuard::new()));
        }
    }

    /// On its core.
    pub(super) fn process(&self) -> Option<&ProcessRef> {
        // SAFETY: it is set before the first turn, and not changed until the worker has ended.
        unsafe { &*self.process.get() }.as_ref()
    }

    /// As [`Self::leave_hand`], all of it now.
    #[inline(always)]
    pub(in crate::actor::run) fn empty_hand(&self) {
        if self.resting.any() || self.run_list.any() {
            self.settle(&PreemptGuard::new());
            self.owes.set(true);
            self.pay();
        }
    }

    /// All that it owes goes back. On its core, with preemption disabled or in its turn.
    #[cold]
    #[inline(never)]
    fn pay(&self) {
        while self.give_back() {}
    }

    /// Gives back a few of those mailboxes that it owes. Whether more are left. On its core.
    pub(in crate::actor::run) fn give_back(&self) -> bool {
        let here = PreemptGuard::new();
        let mut look = self.looked.take();
        for _ in 0..AT_ONCE {
            if !self.give_one_back(&mut look, &here) {
                self.owes.set(false);
                return false;
            }
        }
        self.looked.set(look);
        true
    }

    /// Whether there was one left.
    #[inline(always)]
    fn give_one_back(&self, look: &mut Option<Look>, here: &PreemptGuard) -> bool {
        if self.sort_one(here) || self.put_one_down(Told::Next, here) {
            return true;
        }
        if look.is_none() {
            // What rested until now may have been listed since, behind all that was: then another look follows.
            if self.run_list.iter().all(|entry| entry.held().is_none()) {
                return false;
            }
            *look = Some(self.begin_look());
        }
        let goes_on = look.as_mut().is_some_and(|look| {
            self.look_at_one(look, |entry, is_in_pass| self.goes_back(entry, is_in_pass, here))
        });
        if !goes_on {
            *look = None;
        }
        true
    }

    /// What was listed goes back, if it is in hand, and its worker is told. Whether it does.
    fn goes_back(&self, entry: Waiting, is_in_pass: bool, here: &PreemptGuard) -> bool {
        let Waiting::Held(mailbox) = entry else { return false };
        // SAFETY: the turn ends here, or was interrupted in a behaviour, or is gone; or a suspended behaviour's does, in which this has none.
        let private = unsafe { self.private() };
        let place = mailbox.place();
        // What has not had its turn in this pass stays in it, in the round or as a guest, or who is pointed out first, or invited, would
        // always come first.
        if is_in_pass && usize::from(place.worker) == self.index && self.range.slots <= HINTS {
            private.round.set(private.round.get() | 1 << (usize::from(place.offset) % HINTS));
        }
        self.put_back(mailbox, Told::Next, here);
        true
    }

    /// Begins to go through what is listed.
    fn begin_look(&self) -> Look {
        // SAFETY: as in `goes_back`.
        let private = unsafe { self.private() };
        let pass_end = private.pass_end.replace(End::NONE);
        Look { last: self.run_list.end(), pass_end, is_in_pass: pass_end != End::NONE }
    }

    /// Ends a look before it has come to its end: what was looked at, and stays, comes before the rest again.
    fn leave_off(&self, look: Look) {
        if look.is_in_pass {
            // SAFETY: as in `goes_back`.
            unsafe { self.private() }.pass_end.set(look.pass_end);
        }
        self.run_list.rotate(look.last);
    }

    /// Whether more come behind the one that was looked at. `leaves` says of it, and of whether it is to have its turn in this pass, whether it
    /// has gone.
    #[inline(always)]
    fn look_at_one(&self, look: &mut Look, leaves: impl FnOnce(Waiting, bool) -> bool) -> bool {
        let Some(entry) = self.run_list.pop() else { return false };
        if !leaves(entry, look.is_in_pass) {
            self.run_list.push(entry);
            if look.is_in_pass {
                // SAFETY: as in `goes_back`.
                unsafe { self.private() }.pass_end.set(End::behind(entry));
            }
        }
        look.is_in_pass &= !look.pass_end.is(entry);
        !look.last.is(entry)
    }

    /// Puts back what is in hand of a mailbox that is not listed any more.
    fn put_back(&self, mailbox: &Mailbox, told: Told, here: &PreemptGuard) {
        mailbox.put_back();
        self.one_put_down();
        self.tell(mailbox, told, here);
    }

    /// What is in hand and listed and `may_leave`, given how many of those come before it and how many there are, goes to its owners, until it
    /// `stops`. Nothing does as long as anything rests, which had to be put down first.
    fn give(&self, may_leave: &dyn Fn(&Mailbox, usize, usize) -> bool, stops: fn(&PreemptGuard) -> bool) {
        let begun = PreemptGuard::new();
        if self.resting.any() {
            return;
        }
        let held = self.run_list.iter().filter_map(Waiting::held).count();
        self.gives.set(true);
        let mut look = self.begin_look();
        drop(begun);
        let mut before = 0;
        self.in_steps(&mut |here| {
            let goes_on = self.look_at_one(&mut look, |entry, _| {
                let leaving = entry.held().filter(|mailbox| may_leave(mailbox, before, held));
                before += usize::from(entry.held().is_some());
                if let Some(mailbox) = leaving {
                    self.put_back(mailbox, Told::Owner, here);
                }
                leaving.is_some()
            });
            let stops = goes_on && stops(here);
            if stops {
                self.leave_off(look);
            }
            goes_on && !stops
        });
    }

    /// Of what is in hand and listed, that goes to other workers which `may_leave`, given how many come before it and how many there are. Until
    /// the turn is to end. In the worker's turn, without a behaviour.
    pub(super) fn give_listed(&self, may_leave: &dyn Fn(&Mailbox, usize, usize) -> bool) {
        self.put_resting_down_in_turn();
        self.give(may_leave, |_| sched::is_exhausted());
    }

    /// All that is in hand behind a long behaviour and may leave goes to other workers, until something urgent has come. In the core's loop,
    /// where the behaviour was interrupted.
    pub(super) fn give_all(&self) {
        self.put_down_until(Told::Owner, sched::is_wanted_urgently);
        self.give(&|mailbox, _, _| !mailbox.is_pinned(), sched::is_wanted_urgently);
    }
}
