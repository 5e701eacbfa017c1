//! Hosting: what a worker does with its guests, the mailboxes of idle workers whose mail is handled here.

use super::{Private, Worker};
use crate::actor::mail::Mailbox;
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;

impl Worker {
    /// A sender on this worker's core gives it a mailbox to handle, whose flag it has claimed.
    #[inline(always)]
    pub(in crate::actor::run) fn invite(&self, mailbox: &Mailbox, _here: &PreemptGuard) {
        self.guests.push(mailbox);
        self.statistics.guests.bump();
    }

    /// Whether more waits for it than what it has in hand. On its own core, with preemption off.
    #[inline(always)]
    pub(in crate::actor::run) fn has_other_work(&self) -> bool {
        // SAFETY: the caller is on the worker's core, and interrupts what it does there at most between two accesses.
        let round = unsafe { self.private() }.round.get();
        // Relaxed: an estimate.
        round != 0 || self.hints.load(Ordering::Relaxed) != 0 || self.guests.any()
    }

    /// The guest that has waited longest, if one is to be handled now: they and what the round has left take turns. It is
    /// in no list any more. In the worker's turn.
    #[inline(always)]
    pub(super) fn next_guest(&self, private: &Private) -> Option<&'static Mailbox> {
        if private.round.get() != 0 && !private.guest_is_next.replace(!private.guest_is_next.get()) {
            return None;
        }
        let here = PreemptGuard::new();
        let mailbox = self.guests.pop()?;
        drop(here);
        // From here on it may be invited again, here or elsewhere.
        mailbox.guest.clear();
        Some(mailbox)
    }

    /// A mailbox could not be gulped. If there was no memory for a buffer, a guest comes round again, because nobody else
    /// looks at it.
    #[cold]
    #[inline(never)]
    pub(super) fn not_gulped(&self, mailbox: &Mailbox, was_guest: bool) {
        if was_guest && mailbox.is_ripe() {
            self.executor.notify(mailbox, &PreemptGuard::new());
        }
    }
}
