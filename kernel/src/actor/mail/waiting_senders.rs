//! The senders that wait for room in a bounded mailbox, and how they are told.
//!
//! Any number may wait, for room that is enough for a few. And whoever makes room has preemption disabled. So it tells a few, those who have waited
//! longest, and leaves the others to the loop of its core. That tells a few between two turns, until the mailbox is full again: then a worker
//! takes what is in it sooner or later, and tells the next. Nothing is left to those who were told, for they may be killed, or their futures
//! kept without being polled; nor to the room that they were told of, for somebody else may take that.
//!
//! Nobody waits for ever: a sender looks for room under the lock under which it leaves its waker, and whoever empties the mailbox tells after that. If the
//! loop finds the mailbox full and stops, whoever empties it then raises the rest anew: it sees the flag cleared, or is seen
//! (`sched/cores/raised_flag.rs`; models `waiting_senders`).

use core::ptr::NonNull;

use super::directory;
use crate::actor::storage::MailboxIndex;
use crate::sched::Raisable;
use crate::sync::{PreemptGuard, Seat, Waiters};

/// Those who wait.
#[repr(C)]
pub(crate) struct WaitingSenders {
    /// First, because the loop knows the whole by this.
    rest: Raisable,
    waiting: Waiters,
    mailbox: MailboxIndex,
}

impl WaitingSenders {
    /// Nobody waits for that mailbox.
    pub(super) fn new(mailbox: MailboxIndex) -> Self {
        let rest = Raisable::new(Self::tell_more);
        Self { rest, waiting: Waiters::new(), mailbox }
    }

    /// A place for one more, who does not wait yet.
    pub(crate) fn seat(&self) -> Seat<'_> {
        self.waiting.seat()
    }

    /// There is room, and as many look again as find some; or there never will be, because the mailbox is closed, and all do.
    pub(crate) fn tell(&'static self, here: &PreemptGuard) {
        self.leave_others_to_loop(self.waiting.tell_few(), here);
    }

    fn leave_others_to_loop(&'static self, are_others: bool, here: &PreemptGuard) {
        if !are_others {
            return;
        }
        // They come first, and are told in the place of what is not.
        self.rest.set_urgent(self.waiting.has_urgent_few());
        if !self.rest.leave_to_loop(here) {
            // There are no cores.
            self.waiting.tell_all(|| ());
        }
    }

    /// # Safety
    /// The first part of a whole one, which stays.
    unsafe fn tell_more(rest: NonNull<Raisable>) {
        // SAFETY: by contract, and it is the first field of a type with a fixed layout.
        let this: &'static Self = unsafe { rest.cast::<Self>().as_ref() };
        let mailbox = directory::get(this.mailbox);
        // Whoever takes what is in it, or closes it, after this look leaves the rest to a loop once more.
        let is_full = || mailbox.bound().exceeded_by(mailbox.waiting()).is_some();
        if !mailbox.is_open() || !is_full() {
            this.leave_others_to_loop(this.waiting.tell_few_more(), &PreemptGuard::new());
        }
    }
}
