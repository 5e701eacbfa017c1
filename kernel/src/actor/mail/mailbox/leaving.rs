//! When mail that waits may leave for another core, and whether it was worth it the last time.
//!
//! Every answer is a hint and may be stale: who takes the mail out is decided by the lock and `being_processed`. How the time
//! is measured is in `mail/patience.rs`; who looks, and where the mail goes, is decided in `actor/run`.

use super::Mailbox;
use crate::arch::clock;
use crate::sched::{self, Setting};

impl Mailbox {
    /// Whether its own worker would find something to gulp; may be stale. What is another worker's guest is left to that
    /// one, until it has waited too long there, or that one has sent it home.
    #[inline(always)]
    pub(crate) fn is_ripe(&self) -> bool {
        self.waiting() > 0
            && !self.being_processed.hint()
            && (!self.guest.is_set()
                || self.patience.is_tried()
                || self.may_leave(clock::now(), sched::setting_ticks(Setting::ShareWaitMicroseconds)))
    }

    /// Whether a thief, or the owner of a guest, may take it: it has mail that nobody has in hand, and that has waited
    /// for `wait` clock ticks, is a backlog, or was worth a hand-over the last time. May be stale.
    /// Notes that it was seen at `now`, in clock ticks: whoever looks again later finds how long it has waited since.
    pub(crate) fn may_leave(&self, now: u64, wait: u64) -> bool {
        let waiting = self.waiting();
        waiting > 0
            && !self.being_processed.hint()
            && (self.patience.is_over(now, wait)
                || u64::from(waiting) > sched::setting(Setting::ShareBacklog)
                || self.patience.pays())
    }

    /// Whether mail in hand that waits for its turn has waited for `wait` clock ticks at `now`, has a backlog behind it, or was
    /// worth a hand-over the last time. Notes that it was seen at `now`.
    pub(crate) fn held_may_leave(&self, now: u64, wait: u64) -> bool {
        !self.is_pinned()
            && (self.patience.is_over(now, wait)
                || u64::from(self.waiting()) >= sched::setting(Setting::ShareBacklog)
                || self.patience.pays())
    }

    /// Whether thieves pass by, because its actors are pinned, or take it once it [`may_leave`](Self::may_leave).
    pub(crate) fn may_be_stolen(&self, now: u64, wait: u64) -> bool {
        !self.is_pinned() && self.may_leave(now, wait)
    }

    /// Whether handing its mail over to another core has paid the last time.
    #[inline(always)]
    pub(crate) fn pays(&self) -> bool {
        self.patience.pays()
    }

    /// Whether its mail was handed over, and is to be timed.
    #[inline(always)]
    pub(crate) fn is_tried(&self) -> bool {
        self.patience.is_tried()
    }

    /// Its mail is being handed over to its owner's core.
    pub(crate) fn hand_over(&self) {
        self.patience.hand_over();
    }

    /// Its mail, handed over to another core, has kept that one busy for so many clock ticks.
    pub(crate) fn note_handed_over(&self, ticks: u64) {
        self.patience.note_handed_over(ticks);
    }
}
