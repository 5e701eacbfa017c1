//! What a worker gives away, and when it tells that there is something.
//!
//! Mail stays on its core unless it waits: a mailbox may leave when its mail has waited for `share.wait_us`, or when it
//! is a backlog of more than `share.backlog` messages ([`Mailbox::may_leave`]). A worker with other cores idle looks at
//! its mailboxes twice in that time, between batches, and
//! - calls a thief if one of its own may leave;
//! - wakes the owner of a guest that may leave, of the one that has longest to wait for its turn: that owner finds it in
//!   its own range, takes it, and with it all others of its own that may leave. One owner at a look.
//!
//! It does not read the clock for each batch. It counts batches, and learns how many fit between two looks.
//!
//! A worker in a behaviour that runs for long does not get here. Then the end of its slice calls a core to look (see
//! `sched::run::slice`), and that one finds what waits in any worker's range, its own included.

use core::cell::Cell;

use super::Worker;
use crate::actor::steal::VictimRule;
use crate::arch::clock;
use crate::sched::{self, Setting};
use crate::sync::PreemptGuard;

/// The most batches between two readings of the clock.
const MOST_BATCHES: u32 = 64;

/// When a worker looks again. Its own turn's.
pub(super) struct Pace {
    /// Batches until the clock is read again.
    left: Cell<u32>,
    /// As many as that were, the last time.
    batches: Cell<u32>,
    /// When it looked, in clock ticks.
    looked_at: Cell<u64>,
}

impl Pace {
    pub(super) const fn new() -> Self {
        Self { left: Cell::new(1), batches: Cell::new(1), looked_at: Cell::new(0) }
    }

    /// A batch begins. Whether the clock must be read.
    #[inline(always)]
    fn is_due(&self) -> bool {
        let left = self.left.get() - 1;
        self.left.set(left);
        left == 0
    }

    /// Whether to look at `now`, two looks being `apart`; in clock ticks.
    fn looks(&self, now: u64, apart: u64) -> bool {
        let passed = now.saturating_sub(self.looked_at.get());
        let batches = u64::from(self.batches.get());
        let fitting = if passed < apart { batches * 2 } else { batches * apart / passed.max(1) };
        let fitting = fitting.clamp(1, u64::from(MOST_BATCHES)) as u32;
        self.batches.set(fitting);
        self.left.set(fitting);
        if passed < apart {
            return false;
        }
        self.looked_at.set(now);
        true
    }
}

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
        if !pace.looks(now, self.wait_among(2) / 2) || self.shared.victim_rule == VictimRule::None {
            return;
        }
        if self.has_surplus(now) {
            sched::wake_thief();
        }
        let _here = PreemptGuard::new();
        // Each is looked at, not only until one is found: the look notes when it was seen.
        let wait = self.wait_among(self.guests.iter().take(2).count());
        let leaving = self.guests.iter().filter(|mailbox| mailbox.may_leave(now, wait)).last();
        if let Some(mailbox) = leaving {
            // It stays in the list, where it will be found empty, or in the owner's hand.
            self.shared.send_home(mailbox, self);
            self.statistics.guests_sent_home.bump();
        }
    }

    /// How long its mail waits before it may leave, in clock ticks. From any core.
    ///
    /// Less if several mailboxes wait, and those that were stolen from it lately kept the thief busy for long: then a thief
    /// that has run dry is in need of the next, and will not carry it back.
    pub(in crate::actor) fn mail_wait(&self) -> u64 {
        self.wait_among(self.mailboxes_with_mail() as usize)
    }

    /// How long one of so many mailboxes waits.
    fn wait_among(&self, waiting: usize) -> u64 {
        const EAGERNESS: u64 = 8;
        let wait = sched::setting_ticks(Setting::ShareWaitMicroseconds);
        if waiting > 1 && self.worth.pays() { wait / EAGERNESS } else { wait }
    }

    /// Whether another worker may take one of its mailboxes. From any core. Each is looked at, for the look notes when
    /// it was seen.
    pub(in crate::actor) fn has_surplus(&self, now: u64) -> bool {
        if self.shared.victim_rule == VictimRule::None {
            return false;
        }
        let wait = self.mail_wait();
        self.mailboxes().filter(|mailbox| mailbox.may_be_stolen(now, wait)).count() > 0
    }

    /// Whether something waits for it that is not in its hands. Notes that it was seen at `now`, so that who is called for
    /// it finds how long it has waited. For the interrupt of its own core: the turn may be in the middle of changing the
    /// list of guests, so what is seen of it is no more than a hint, and no more than a few are looked at.
    pub(in crate::actor) fn has_waiting(&self, now: u64) -> bool {
        const MOST_GUESTS: usize = 64;
        let wait = self.mail_wait();
        let guests = self.guests.iter().take(MOST_GUESTS);
        let waiting = self.mailboxes().chain(guests).filter(|mailbox| {
            mailbox.may_leave(now, wait);
            mailbox.waiting() > 0
        });
        waiting.count() > 0
    }
}

#[cfg(test)]
mod tests {
    use super::{MOST_BATCHES, Pace};

    /// Batches until the next look, each taking `ticks`.
    fn batches_until_look(pace: &Pace, now: &mut u64, ticks: u64, apart: u64) -> u32 {
        for batch in 1..100_000 {
            *now += ticks;
            if pace.is_due() && pace.looks(*now, apart) {
                return batch;
            }
        }
        panic!("it never looks again");
    }

    #[test]
    fn it_looks_about_as_often_as_asked_whatever_batches_take() {
        for ticks in [1, 7, 100, 999, 5_000] {
            let (pace, mut now) = (Pace::new(), 0);
            // It learns first.
            batches_until_look(&pace, &mut now, ticks, 1_000);
            for _ in 0..10 {
                let before = now;
                batches_until_look(&pace, &mut now, ticks, 1_000);
                let most = 1_000 + ticks * u64::from(MOST_BATCHES).min(2_000 / ticks + 1);
                assert!((1_000..=most).contains(&(now - before)), "{ticks}: {}", now - before);
            }
        }
    }
}
