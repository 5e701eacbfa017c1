//! What a worker gives away, and when it tells that there is something.
//!
//! Mail stays on its core unless it waits: a mailbox may leave when its mail has waited for `share.wait_us`, or when it
//! is a backlog of more than `share.backlog` messages (`Mailbox::may_leave`). A worker with other cores idle looks at
//! its mailboxes twice in that time, between batches, but not before the first one after it was idle, and
//! - calls a thief if one of its own may leave;
//! - wakes the owner of a guest that may leave, of the one that has longest to wait for its turn: that owner finds it in
//!   its own range, takes it, and with it all others of its own that may leave. One owner at a look.
//!
//! A worker in a behaviour that runs for long does not get here. Then the end of its slice calls a core to look (see
//! `sched::run::slice`), and that one finds what waits in any worker's range, its own included.
//!
//! Of an executor that stops nothing may leave, and nobody looks: what waits is dropped. A worker that has ended may be interrupted before its
//! turn is over, when its mailboxes, and the links between them, belong to another executor.

use super::Worker;
use crate::actor::mail::Mailbox;
use crate::actor::mail::list::{Resting, Waiting};
use crate::actor::run::mailbox_victim::MailboxVictim;
use crate::arch::clock;
use crate::sched::{self, Setting};
use crate::sync::PreemptGuard;

impl Worker {
    /// A batch begins: now and then looks whether something may leave, if a core is idle that could take it.
    #[inline(always)]
    pub(super) fn share(&self) {
        // SAFETY: this is the worker's turn.
        if sched::some_core_is_idle() && unsafe { self.private() }.pace.is_due() {
            self.look_for_surplus();
        }
    }

    #[cold]
    #[inline(never)]
    fn look_for_surplus(&self) {
        let now = clock::now();
        // SAFETY: this is the worker's turn.
        let pace = &unsafe { self.private() }.pace;
        if !pace.looks(now, self.wait_among(2) / 2) || self.executor.victim_rule == MailboxVictim::None {
            return;
        }
        // Of what is listed half may leave, from the far end: the worker comes to the rest first.
        let wait = self.wait_among(2);
        self.give_listed(&|mailbox, before, listed| {
            before >= listed.div_ceil(2) && mailbox.held_may_leave(now, wait)
        });
        if self.has_surplus(now, sched::is_exhausted) {
            sched::wake_thief();
        }
        let _here = PreemptGuard::new();
        // Each is looked at, not only until one is found: the look notes when it was seen.
        let guests = || self.run_list.iter().filter_map(Waiting::guest);
        let wait = self.wait_among(guests().take(2).count());
        let leaving = guests().filter(|mailbox| mailbox.may_leave(now, wait)).last();
        if let Some(mailbox) = leaving {
            // It stays in the list, where it will be found empty, or in the owner's hand.
            self.executor.send_home(mailbox, self);
            self.statistics.guests_sent_home.bump();
        }
    }

    /// How long the mail of one of so many mailboxes waits before it may leave, in clock ticks. From any core.
    ///
    /// Less if several mailboxes wait, and those that were stolen from it lately kept the thief busy for long: then a thief
    /// that has run dry is in need of the next, and will not carry it back.
    pub(in crate::actor::run) fn wait_among(&self, waiting: usize) -> u64 {
        self.wait_of(sched::setting_ticks(Setting::ShareWaitMicroseconds), waiting)
    }

    /// The same of what the setting says, for who looks at many workers.
    pub(in crate::actor::run) fn wait_of(&self, wait: u64, waiting: usize) -> u64 {
        const EAGERNESS: u64 = 8;
        if waiting > 1 && self.is_worth_robbing() { wait / EAGERNESS } else { wait }
    }

    /// Whether mailboxes that were stolen from it lately kept the thief busy for long. From any core.
    pub(in crate::actor::run) fn is_worth_robbing(&self) -> bool {
        self.worth.pays()
    }

    /// Whether another worker may take one of its mailboxes. From any core. Each is looked at, because the look notes when
    /// it was seen; or until it `stops`.
    pub(in crate::actor::run) fn has_surplus(&self, now: u64, stops: impl Fn() -> bool) -> bool {
        if self.executor.victim_rule == MailboxVictim::None || self.executor.is_stopping() {
            return false;
        }
        // Counted only where that says anything.
        let with_mail = if self.is_worth_robbing() { self.mailboxes_with_mail() } else { 1 };
        let wait = self.wait_among(with_mail as usize);
        let looked_at = self.mailboxes().take_while(|_| !stops());
        looked_at.filter(|mailbox| mailbox.may_be_stolen(now, wait)).count() > 0
    }

    /// Whether something waits for it that is not in its hands. Notes that it was seen at `now`, so that who is called for
    /// it finds how long it has waited. On its own core, where its turn was interrupted with preemption enabled, and with interrupts
    /// unmasked: each mailbox is looked at, until something urgent has come.
    pub(in crate::actor::run) fn has_waiting(&self, now: u64) -> bool {
        if self.executor.is_stopping() {
            return false;
        }
        let here = PreemptGuard::new();
        self.note_look();
        let goes_on = || !sched::is_wanted_urgently(&here);
        let wait = self.wait_among(self.mailboxes_with_mail() as usize);
        let is_waiting = |mailbox: &Mailbox| {
            mailbox.may_leave(now, wait);
            mailbox.waiting() > 0
        };
        // Of these nobody else takes what comes from elsewhere.
        let resting = self.resting.iter().map(|Resting(mailbox)| mailbox);
        let waiting =
            self.mailboxes().chain(resting).take_while(|_| goes_on()).filter(|mailbox| is_waiting(mailbox));
        let listed = self.run_list.iter().take_while(|_| goes_on()).filter(|entry| match entry {
            Waiting::Guest(mailbox) => is_waiting(mailbox),
            Waiting::Held(mailbox) => {
                mailbox.held_may_leave(now, wait);
                true
            }
        });
        waiting.count() + listed.count() > 0 || self.has_more_in_lane() || self.has_unsorted()
    }

    /// What waits in hand has waited behind a long behaviour: all of it goes to other workers, until something urgent has come. On its own core,
    /// where its turn was interrupted with preemption enabled.
    ///
    /// Not behind a lane in which all was handled meanwhile that waited at the first look.
    pub(in crate::actor::run) fn let_go(&self) {
        // Nor has a turn that is putting down what it has in hand.
        let has_long = !self.is_putting_down() && !self.lane_keeps_up() && !self.executor.is_stopping();
        if self.executor.victim_rule != MailboxVictim::None && has_long {
            self.give_all();
            // Again, because whoever was called may have looked too early.
            sched::wake_thief();
        }
    }
}
