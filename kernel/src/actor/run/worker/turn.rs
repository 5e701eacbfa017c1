//! A worker's turn: which mailboxes it looks at, when it steals, when it waits.

use super::gulping::AfterBatch;
use super::{HINTS, Private, Worker};
use crate::actor::mail::Mailbox;
use crate::actor::mail::list::{End, Waiting};
use crate::actor::run::batch::Batch;
use crate::actor::run::steal;
use crate::arch::atomic::Ordering;
use crate::arch::{barrier, clock};
use crate::sched::{self, Step};
use crate::sync::PreemptGuard;

impl Worker {
    /// One turn.
    pub(in crate::actor::run) fn turn(&self) -> Step {
        self.pay_first();
        if !self.executor.is_open() {
            return self.turn_while_closed();
        }
        // Relaxed: whoever woke it has cleared it already, or it was woken for another reason.
        self.idle.store(false, Ordering::Relaxed);
        let mut budget = self.executor.reductions;
        // SAFETY: set at the start and by `detach` only, both to live batches.
        let batch = unsafe { &*self.batch.load(Ordering::Relaxed) };
        // Nothing is in hand but perhaps the rest of a batch, wherever that came from.
        debug_assert!(
            self.run_list.iter().all(|entry| entry.held().is_none()),
            "mail was in hand between two turns"
        );
        self.in_hand.set(0);
        // SAFETY: this is the worker's turn, and no behaviour runs yet, so it cannot be detached.
        let private = unsafe { self.private() };
        private.is_listed.set(false);
        let mut has_delivered = batch.segment().is_some();
        if has_delivered {
            self.count_given_batch(batch.mailbox());
            if self.has_other_work() {
                self.list_beside_batch(private);
            }
            if sched::is_exhausted() {
                // Somebody urgent has come already.
                budget = budget.min(1);
            }
            match self.run_batch(batch, &mut budget) {
                AfterBatch::GoOn => {}
                AfterBatch::Over(step) => return step,
            }
        }
        // What behaviours send is charged to the turn as well.
        loop {
            let is_exhausted = budget == 0 || sched::is_exhausted();
            let is_last = is_exhausted && budget > 0 && !has_delivered && self.knows_of_mail();
            if is_last {
                // Somebody urgent has come already, and may come as soon in each turn: in each at least one message is delivered.
                budget = 1;
            } else if is_exhausted {
                match self.goes_on() {
                    Some(granted) => budget = granted,
                    None => break,
                }
            }
            if self.executor.is_stopping() {
                // It ends in its next turn, behind what it has in hand.
                break;
            }
            // SAFETY: this is the worker's turn, and no batch is in hand, so it cannot be detached.
            let private = unsafe { self.private() };
            let listed = if self.run_list.any() { self.next_listed(private, is_last) } else { None };
            if let Some(Waiting::Held(mailbox)) = listed {
                has_delivered = true;
                self.begin_listed(mailbox, private, batch);
                match self.run_and_judge(mailbox, batch, &mut budget) {
                    AfterBatch::GoOn => continue,
                    AfterBatch::Over(step) => return step,
                }
            }
            let guest = listed.and_then(Waiting::guest);
            let mailbox = if let Some(guest) = guest {
                self.receive(guest);
                if !may_be_gulped(guest) {
                    budget -= 1;
                    continue;
                }
                guest
            } else if private.round.get() != 0 {
                let Some(mailbox) = self.next_in_round(private) else { continue };
                mailbox
            } else if self.run_list.any() {
                self.begin_pass(private);
                continue;
            } else if self.next_round(private) {
                if private.round.get() == 0 {
                    continue;
                }
                let Some(mailbox) = self.next_in_round(private) else { continue };
                mailbox
            } else {
                budget -= 1;
                if self.resting.any() {
                    // Mail may have come for what rests.
                    self.put_resting_down_in_turn();
                    continue;
                }
                // With something else to run here, the core is not in need of more.
                if !sched::has_more_here() && steal::try_steal(self) {
                    continue;
                }
                if sched::is_exhausted() {
                    // The search may have been cut short: it is made anew in the next turn.
                    continue;
                }
                return if self.wait() { Step::Pending } else { Step::Yield };
            };
            if !self.gulp(mailbox, batch) {
                self.not_gulped(mailbox, guest.is_some());
                budget -= 1;
                continue;
            }
            has_delivered = true;
            match self.run_and_judge(mailbox, batch, &mut budget) {
                AfterBatch::GoOn => {}
                AfterBatch::Over(step) => return step,
            }
        }
        self.leave_hand();
        Step::Yield
    }

    /// Whether something is in hand, or at most [`HINTS`] looks may find something. Where there are more mailboxes than that, a look at all goes on in
    /// the next turn where it ended in this one.
    #[cold]
    #[inline(never)]
    fn knows_of_mail(&self) -> bool {
        // SAFETY: this is the worker's turn, and no batch is in hand.
        let round = unsafe { self.private() }.round.get();
        // Relaxed: of a hint that comes later, the next turn knows.
        let has_some = || round != 0 || self.hints.load(Ordering::Relaxed) != 0;
        self.run_list.any() || (self.range.slots <= HINTS && has_some())
    }

    /// What was granted to the turn is used up: what it goes on with in the place of the next one, if it may. Either of them goes on with
    /// what is left of this round, and then looks at all.
    #[cold]
    #[inline(never)]
    fn goes_on(&self) -> Option<u64> {
        self.point_all_out();
        self.grant_more(false)
    }

    /// As [`Self::goes_on`], in the middle of a batch, or in the lane, which `keeps` what is there.
    #[cold]
    #[inline(never)]
    pub(super) fn grant_more(&self, keeps: bool) -> Option<u64> {
        // What it has in hand stays there, and what waits for the end of the turn would go on waiting.
        let has_waiting = self.has_waiting_for_end(usize::MAX) == Some(true);
        let may_go_on = !has_waiting && !self.executor.is_stopping() && sched::may_go_on(keeps);
        may_go_on.then_some(self.executor.reductions).filter(|&granted| granted > 0)
    }

    /// Delivers the batch that was just begun and, if it was handed over, notes whether that was worth it.
    #[inline(always)]
    fn run_and_judge(&self, mailbox: &Mailbox, batch: &Batch, budget: &mut u64) -> AfterBatch {
        let began = if mailbox.is_tried() { clock::now() } else { 0 };
        let after = self.run_batch(batch, budget);
        if began != 0 {
            self.judge_hand_over(mailbox, began);
        }
        after
    }

    /// The next mail that was handed over to this worker tells whether taking from `victim` is worth it.
    pub(in crate::actor::run) fn note_robbed(&self, victim: usize) {
        // Relaxed: a hint. There are fewer workers than a `u32` has values.
        self.robbed.store(victim as u32 + 1, Ordering::Relaxed);
    }

    /// Mail that was handed over has been handled since `began`, in clock ticks: tells whether that was worth it. The turn
    /// may have been detached meanwhile.
    #[cold]
    #[inline(never)]
    fn judge_hand_over(&self, mailbox: &Mailbox, began: u64) {
        let ticks = clock::now().saturating_sub(began);
        mailbox.note_handed_over(ticks);
        // Relaxed: a hint. A theft between the two that is forgotten is one that is not judged.
        let robbed = self.robbed.load(Ordering::Relaxed);
        self.robbed.store(0, Ordering::Relaxed);
        let victim = (robbed as usize).checked_sub(1).and_then(|victim| self.executor.workers().get(victim));
        if let Some(victim) = victim {
            victim.worth.note(ticks);
        }
    }

    /// A turn before the executor is complete, or after it was asked to stop.
    #[cold]
    fn turn_while_closed(&self) -> Step {
        // It stays announced as idle until the executor is complete: who then has mail for it wakes it.
        if self.executor.is_stopping() { self.end() } else { Step::Pending }
    }

    /// The rest of a long batch comes first: what waits meanwhile is taken in hand, as when a round begins, or the batch's actors would
    /// send to it by the lock for as long as that takes. A pass that is not over goes on.
    #[cold]
    #[inline(never)]
    fn list_beside_batch(&self, private: &Private) {
        if private.round.get() == 0 && private.pass_end.get() == End::NONE {
            return self.begin_pass(private);
        }
        let here = PreemptGuard::new();
        // What is in the list now are guests. First come those of this pass, then what is left of the round, then the other guests.
        let last = self.run_list.end();
        let pass_end = private.pass_end.replace(End::NONE);
        if pass_end != End::NONE {
            self.run_list.rotate(pass_end);
        }
        let of_pass = self.run_list.end();
        drop(here);
        self.list_round(private);
        let here = PreemptGuard::new();
        let is_listed = pass_end != End::NONE || self.run_list.end() != of_pass;
        if is_listed {
            private.pass_end.set(self.run_list.end());
        }
        if last != pass_end {
            self.run_list.rotate(last);
        }
        drop(here);
        self.list_pointed_out(private);
    }

    /// What was pointed out since the pass began is taken in hand behind it, if there is much.
    fn list_pointed_out(&self, private: &Private) {
        // Relaxed and acquire: as in `next_round`.
        if self.hints.load(Ordering::Relaxed) == 0 {
            return;
        }
        let of_pass = private.round.replace(self.hints.swap(0, Ordering::Acquire));
        self.list_round(private);
        let left = private.round.replace(of_pass);
        // Release: as in `hint`, for what was acquired above.
        self.hints.fetch_or(left, Ordering::Release);
    }

    /// All have had their turn that were waiting when the last pass began. Now it is for those that wait by now, listed and
    /// pointed out.
    fn begin_pass(&self, private: &Private) {
        // Relaxed and acquire: as in `next_round`.
        if self.hints.load(Ordering::Relaxed) != 0 {
            private.round.set(self.hints.swap(0, Ordering::Acquire));
            self.list_round(private);
        }
        let _here = PreemptGuard::new();
        private.pass_end.set(self.run_list.end());
    }

    /// Begins a round with what was pointed out. Whether there is anything to look at.
    #[inline(always)]
    fn next_round(&self, private: &Private) -> bool {
        // Relaxed: only saves the exchange. Acquire: pairs with the release in `hint`.
        let round = match self.hints.load(Ordering::Relaxed) {
            0 => return false,
            _ => self.hints.swap(0, Ordering::Acquire),
        };
        private.round.set(round);
        self.list_round(private);
        true
    }

    /// The next rounds look at all mailboxes.
    pub(super) fn point_all_out(&self) {
        let all = 1_u64.checked_shl(self.range.slots as u32).map_or(u64::MAX, |bit| bit - 1);
        // Relaxed: read by this worker; the look at each mailbox finds its mail.
        self.hints.fetch_or(all, Ordering::Relaxed);
    }

    /// The next mailbox of this round, if it has mail. The round is not over.
    #[inline(always)]
    fn next_in_round(&self, private: &Private) -> Option<&'static Mailbox> {
        let round = private.round.get();
        let bit = round.trailing_zeros() as usize;
        if self.range.slots <= HINTS {
            private.round.set(round & (round - 1));
            let mailbox = (bit < self.range.slots).then(|| self.own(bit))?;
            return may_be_gulped(mailbox).then_some(mailbox);
        }
        // Several slots share the bit: it stays until all of them were looked at.
        let mut offset = bit + HINTS * private.cursor.get();
        while offset < self.range.slots {
            private.cursor.set(private.cursor.get() + 1);
            let mailbox = self.own(offset);
            if may_be_gulped(mailbox) {
                return Some(mailbox);
            }
            offset += HINTS;
        }
        private.cursor.set(0);
        private.round.set(round & (round - 1));
        None
    }

    /// Announces that it waits, and looks again. Whether it shall wait.
    fn wait(&self) -> bool {
        // Relaxed: the barrier orders it before the look.
        self.idle.store(true, Ordering::Relaxed);
        // Pairs with the barrier in `notify`.
        barrier::full();
        let (ripe, is_all) = self.look_at_all();
        if is_all && ripe == 0 && !self.run_list.any() && !self.executor.is_stopping() {
            // SAFETY: this is the worker's turn, and no batch is in hand.
            unsafe { self.private() }.pace.found_nothing();
            return true;
        }
        // Relaxed: read by this worker.
        self.hints.fetch_or(ripe, Ordering::Relaxed);
        // Relaxed: a waker that was faster has only woken it once more.
        self.idle.store(false, Ordering::Relaxed);
        false
    }

    /// Which bits of a round have mailboxes that are ripe, and whether all were looked at: the look at many ends when the turn is to end.
    fn look_at_all(&self) -> (u64, bool) {
        let (mut ripe, mut mailboxes) = (0, self.mailboxes());
        for begin in (0..self.range.slots).step_by(HINTS) {
            if begin > 0 && sched::is_exhausted() {
                return (ripe, false);
            }
            // What another worker has in hand it will tell of when it puts it down.
            ripe = (mailboxes.by_ref().take(HINTS).enumerate())
                .filter(|(_, mailbox)| mailbox.is_ripe())
                .fold(ripe, |ripe, (offset, _)| ripe | 1 << offset);
        }
        (ripe, true)
    }

    /// The executor stops: drops what is in hand. Its last turn.
    fn end(&self) -> Step {
        self.empty_hand();
        let _here = PreemptGuard::new();
        // SAFETY: set at the start and by `detach` only, both to live batches.
        let batch = unsafe { &*self.batch.load(Ordering::Relaxed) };
        if batch.segment().is_some() {
            batch.mailbox().hand.close();
        }
        // The guests: when all workers have ended, their links are somebody else's.
        self.run_list.give_up();
        self.executor.one_ended();
        Step::Done
    }
}

/// Whether there is mail, and nobody has the mailbox in hand. Whoever has tells of its mail: a sender that told this worker had
/// found nobody who has, after a full barrier, and what leads here, a bit or the guest flag, orders this look behind that one
/// (models `rounds` and `guests`).
#[inline(always)]
fn may_be_gulped(mailbox: &Mailbox) -> bool {
    mailbox.waiting() > 0 && !mailbox.is_being_processed()
}
