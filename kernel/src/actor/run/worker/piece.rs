//! A suspended behaviour that goes on on the worker's core, in a turn of its own.
//!
//! Its messages would take the locks of their mailboxes, one by one. So what it sends comes into the hand of the worker there, as in a turn of
//! that one: mailboxes to which it sends the first message, and those that have much mail when its turn begins. The worker has its turn when
//! that of the behaviour is over. It is woken at once; so the behaviour is suspended again after two slices, as others wait for the core.
//!
//! - Only mailboxes of that worker's come in hand, and a few at a time. None does while a core is idle, which may take their mail; what is in hand
//!   when a slice ends and one has become idle goes back.
//! - All of it goes back into the mailboxes' queues when the behaviour's turn is over, however it ends. The core's loop tells of that, so it is
//!   never in hand between two turns. To the others it is as if a turn of the worker's had ended (models `in_hand`).
//! - None comes in hand before the executor is complete, or after it was asked to stop: its worker may have ended. While the behaviour has the
//!   core that has no turn.

use super::{HINTS, Worker};
use crate::actor::mail::Mailbox;
use crate::actor::mail::mailbox::HoldResult;
use crate::sched;
use crate::sync::PreemptGuard;

/// How many mailboxes may be in hand then. They are given back by the core's loop, while something urgent may wait.
const MOST_IN_HAND: usize = 16;

/// With fewer messages waiting, to take a mailbox in hand and to put it back costs more than the locks, if as many come in a turn.
const MANY: u32 = 64;

impl Worker {
    /// A suspended behaviour goes on on its core. In the core's loop.
    pub(in crate::actor::run) fn begin_piece(&self, here: &PreemptGuard) {
        self.pay_first();
        self.in_hand.set(0);
        self.has_piece.set(self.executor.is_open());
        for offset in 0..self.range.slots.min(HINTS) {
            let mailbox = self.own(offset);
            if mailbox.waiting() < MANY || mailbox.is_being_processed() {
                continue;
            }
            // Whatever is urgent by now does not wait for the rest.
            if sched::is_wanted_urgently(here) || !self.may_hold_for_piece(mailbox, here) {
                return;
            }
            if matches!(mailbox.hold_waiting(here), HoldResult::Held) {
                self.list(mailbox, here);
            }
        }
    }

    /// The turn of a suspended behaviour on its core is over.
    pub(in crate::actor::run) fn end_piece(&self) {
        if self.has_piece.replace(false) {
            self.empty_hand();
        }
    }

    /// Whether a mailbox, in which something waits, may come in its hand though this is not its turn. If it does the worker looks at it in its next
    /// one.
    pub(in crate::actor::run) fn may_hold_for_piece(&self, mailbox: &Mailbox, _here: &PreemptGuard) -> bool {
        if !self.has_piece.get()
            || self.in_hand.get() >= MOST_IN_HAND
            || usize::from(mailbox.place().worker) != self.index
            || sched::some_core_is_idle()
        {
            return false;
        }
        self.wake_if_idle();
        true
    }
}
