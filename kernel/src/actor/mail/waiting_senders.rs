//! The senders that wait for room in a bounded mailbox, and how they are told.
//!
//! Whoever makes room, or closes the mailbox, has preemption disabled, and any number may wait. So it tells a few, and leaves the others to the
//! loop of its core, which tells a few between two turns. It is not left to those who were told: they may be killed, or their futures kept
//! without being polled.

use core::ptr::NonNull;

use crate::sched::Raisable;
use crate::sync::{PreemptGuard, Seat, Waiters};

/// Those who wait.
#[repr(C)]
pub(crate) struct WaitingSenders {
    /// First, because the loop knows the whole by this.
    rest: Raisable,
    waiting: Waiters,
}

impl WaitingSenders {
    /// Nobody waits.
    pub(super) fn new() -> Self {
        Self { rest: Raisable::new(Self::tell_more), waiting: Waiters::new() }
    }

    /// A place for one more, who does not wait yet.
    pub(crate) fn seat(&self) -> Seat<'_> {
        self.waiting.seat()
    }

    /// There is room, or there never will be: all who wait look again.
    pub(crate) fn tell(&'static self, here: &PreemptGuard) {
        if self.waiting.tell_first() && !self.rest.leave_to_loop(here) {
            self.waiting.tell_rest();
        }
    }

    /// # Safety
    /// The first part of a whole one, which stays.
    unsafe fn tell_more(rest: NonNull<Raisable>) {
        // SAFETY: by contract, and it is the first field of a type with a fixed layout.
        let this: &'static Self = unsafe { rest.cast::<Self>().as_ref() };
        if this.waiting.tell_more() {
            this.rest.leave_to_loop(&PreemptGuard::new());
        }
    }
}
