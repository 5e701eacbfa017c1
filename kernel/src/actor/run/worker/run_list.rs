//! The run list: mailboxes that are in hand, with mail that waits for its turn.
//!
//! A behaviour that sends the first message into a mailbox whose worker is its own, or is idle, takes the mailbox in hand for its
//! own worker: from then on it is being processed by that worker, and senders on that core add to it without a lock
//! (`mail/hand.rs`). The worker finds it here, and delivers without a gulp.
//!
//! - The sender holds the mailbox's lock, so it excludes other workers as a gulp does.
//! - It is a part of the worker's turn, so the worker will look here before it sleeps.
//! - The list is empty between turns. Where a turn ends early, by its budget, a split or a crash, what is listed goes back into
//!   the mailboxes' queues, in front, and is announced as mail that has just come. So no process that has the core next, for
//!   however long, keeps others from it.
//! - Within a turn, what waits too long goes back, too (`surplus.rs`).

use super::{Private, Worker};
use crate::actor::mail::Mailbox;
use crate::actor::run::batch::Batch;
use crate::arch::atomic::Ordering;
use crate::stats;
use crate::sync::PreemptGuard;

impl Worker {
    /// Whether the caller, on this worker's core, is a part of its turn: a behaviour.
    #[inline(always)]
    pub(in crate::actor::run) fn is_delivering(&self, _here: &PreemptGuard) -> bool {
        // SAFETY: set at the start and by `detach` only, both to live batches; on this core it changes between turns, or by
        // an interrupt that finds preemption enabled.
        unsafe { &*self.batch.load(Ordering::Relaxed) }.is_armed()
    }

    /// A behaviour in this worker's turn has taken a mailbox in hand for it.
    #[inline(always)]
    pub(in crate::actor::run) fn list(&self, mailbox: &Mailbox, _here: &PreemptGuard) {
        self.run_list.push(mailbox);
    }

    /// Begins a batch with the mail that has waited longest in hand, if that is to be handled now: it takes turns with what
    /// others have pointed out. In the worker's turn, without a batch.
    #[inline(always)]
    pub(super) fn begin_listed(&self, private: &Private, batch: &Batch) -> Option<&'static Mailbox> {
        // Relaxed: a hint that comes later is found the next time.
        let has_others =
            private.round.get() != 0 || self.hints.load(Ordering::Relaxed) != 0 || self.guests.any();
        if has_others && !private.listed_is_next.replace(!private.listed_is_next.get()) {
            return None;
        }
        let _here = PreemptGuard::new();
        let mailbox = self.run_list.pop()?;
        let held = mailbox.hand.take_held()?;
        batch.begin_held(mailbox, held);
        batch.take_gate();
        self.set_in_batch(true);
        private.is_listed.set(true);
        if stats::timing() {
            self.statistics.mail_latency.record(mailbox.waited_ticks());
        }
        Some(mailbox)
    }

    /// The turn ends: what is listed goes back, and its workers are told. On its own core.
    #[inline(always)]
    pub(in crate::actor::run) fn put_run_list_back(&self, here: &PreemptGuard) {
        if self.run_list.any() {
            self.put_all_back(here);
        }
    }

    #[cold]
    #[inline(never)]
    fn put_all_back(&self, here: &PreemptGuard) {
        while let Some(mailbox) = self.run_list.pop() {
            mailbox.put_back();
            self.executor.notify(mailbox, here);
        }
    }

    /// What is listed and `may_leave`, given how many come before it and how many are listed, goes to other workers.
    pub(super) fn give_listed(&self, may_leave: impl Fn(&Mailbox, usize, usize) -> bool) {
        let _here = PreemptGuard::new();
        let listed = self.run_list.iter().count();
        for before in 0..listed {
            let Some(mailbox) = self.run_list.pop() else { return };
            if may_leave(mailbox, before, listed) {
                mailbox.put_back();
                self.executor.send_home(mailbox, self);
            } else {
                self.run_list.push(mailbox);
            }
        }
    }
}
