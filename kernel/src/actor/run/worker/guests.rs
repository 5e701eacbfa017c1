//! Guests: mailboxes of idle workers, whose mail was sent on this worker's core and is handled here.
//!
//! Waking an idle core for one message costs more than handling it. So whoever sends a lone message to an actor whose
//! worker is idle gives the mailbox to the worker on its own core, the *host*, as a guest. The mailbox stays where it is
//! in the table, and its owner stays its owner: the next message may find that one awake.
//!
//! - A mailbox is in one list at most: [`GuestFlag`](crate::actor::mail::guest_flag::GuestFlag) says so, and why no mail
//!   is overlooked.
//! - Only code on the host's core touches the list, with preemption off, and no interrupt does. So a host that goes to
//!   sleep cannot miss a guest: whoever invites one runs before that or after it, and then wakes the host.
//! - What excludes two workers is `being_processed`, for guests as for all: the owner may take the mailbox all the same
//!   (see [`surplus`](super::surplus)), a thief may steal it from the owner. Then the host finds nothing, or misses.
//! - The list is the host's alone and ends with it. Mailboxes are closed by then; the next executor that opens one takes
//!   the flag back.

use core::cell::Cell;
use core::ptr;

use crate::actor::mail::Mailbox;
use crate::arch::atomic::Ordering;

/// A worker's guests, in the order in which they came. Touched on its core only, with preemption off.
pub(super) struct Guests {
    first: Cell<*const Mailbox>,
    last: Cell<*const Mailbox>,
}

impl Guests {
    pub(super) const fn new() -> Self {
        Self { first: Cell::new(ptr::null()), last: Cell::new(ptr::null()) }
    }

    /// Whether there is one.
    #[inline(always)]
    pub(super) fn any(&self) -> bool {
        !self.first.get().is_null()
    }

    /// All of them, in order. On the worker's core, with preemption off or in an interrupt: there, what is seen may be
    /// in the middle of being changed, but each link is null or leads to a mailbox.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static Mailbox> {
        // SAFETY: mailboxes are never freed.
        let mut next = unsafe { self.first.get().as_ref() };
        core::iter::from_fn(move || {
            let mailbox = next?;
            // Relaxed: the list is this core's.
            // SAFETY: as above.
            next = unsafe { mailbox.next_guest.load(Ordering::Relaxed).as_ref() };
            Some(mailbox)
        })
    }

    pub(super) fn push(&self, mailbox: &Mailbox) {
        // Relaxed: the list is this core's.
        mailbox.next_guest.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: mailboxes are never freed.
        match unsafe { self.last.get().as_ref() } {
            Some(last) => last.next_guest.store(ptr::from_ref(mailbox).cast_mut(), Ordering::Relaxed),
            None => self.first.set(mailbox),
        }
        self.last.set(mailbox);
    }

    pub(super) fn pop(&self) -> Option<&'static Mailbox> {
        // SAFETY: mailboxes are never freed.
        let mailbox = unsafe { self.first.get().as_ref() }?;
        // Relaxed: as above.
        let next = mailbox.next_guest.load(Ordering::Relaxed);
        self.first.set(next);
        if next.is_null() {
            self.last.set(ptr::null());
        }
        Some(mailbox)
    }
}
