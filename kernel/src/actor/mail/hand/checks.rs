//! Which mail in hand is delivered without a look at its actor's word.
//!
//! Mail is *checked* if its sender has found its actor attached, with an acquire, in one step with appending it: on this core here, or in the
//! queue while it held the mailbox's lock. From then on, until it is delivered, only a batch of this mailbox can end the actor or detach it,
//! because attached actors are run by whoever has their mailbox in hand. So the word need not be looked at again, unless that happens.
//! Where it may have, mail is *unchecked*, and each envelope's actor is looked at. That is
//!
//! - what is kept here, or waits in the queue, when something is appended for an actor that is not attached;
//! - what comes out of the queue if an actor of this mailbox has ended, crashed or been detached since something last did
//!   ([`gone_flag`](crate::actor::mail::gone_flag));
//! - what is in a batch or follows it when a behaviour in it ends its actor, crashes, or is suspended.
//!
//! Here it is said of what is kept in hand; of what waits the queue says it. It becomes a batch as a whole, and then the batch says it (models
//! `checks`).

use super::Hand;
use super::held::{GROWN, SOLE};
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;

/// In the hand's nature: what is kept here is unchecked.
const UNCHECKED: u8 = 2;

impl Hand {
    /// What is kept here is checked.
    pub(super) fn is_checked(&self) -> bool {
        self.nature() & UNCHECKED == 0
    }

    /// What is kept here is sole, and checked.
    #[inline(always)]
    pub(crate) fn is_sole_and_checked(&self) -> bool {
        self.nature() & !GROWN == SOLE
    }

    /// What is kept here is unchecked from now on. On the core of the worker that has the mailbox in hand.
    #[inline(always)]
    pub(crate) fn note_unchecked(&self, _here: &PreemptGuard) {
        self.nature.store(self.nature() | UNCHECKED, Ordering::Relaxed);
    }

    /// What is kept here was checked, or nothing is.
    #[inline(always)]
    pub(super) fn note_checked(&self) {
        self.nature.store(self.nature() & !UNCHECKED, Ordering::Relaxed);
    }

    /// What is kept here becomes a batch, or goes back into the queue: whether that is unchecked.
    pub(in crate::actor::mail) fn take_unchecked(&self) -> bool {
        let is_unchecked = self.nature() & UNCHECKED != 0;
        self.note_checked();
        is_unchecked
    }
}
