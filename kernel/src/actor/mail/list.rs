//! Lists of mailboxes that a worker will look at, in the order in which they came.
//!
//! Touched on the worker's core only, with preemption off. A mailbox is in one list of a kind at most, because the link lies
//! in it; who may put it there says the flag that goes with the kind.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr;

use super::Mailbox;
use crate::arch::atomic::{AtomicPtr, Ordering};

/// Which of a mailbox's links a list uses.
pub(crate) trait Link {
    fn of(mailbox: &Mailbox) -> &AtomicPtr<Mailbox>;
}

/// Of run lists: the mailbox is in the hand of the list's worker, and has mail there.
pub(crate) struct Runnable;

impl Link for Runnable {
    #[inline(always)]
    fn of(mailbox: &Mailbox) -> &AtomicPtr<Mailbox> {
        &mailbox.hand.next
    }
}

/// Of what a worker has in hand and may be at rest.
pub(crate) struct Resting;

impl Link for Resting {
    #[inline(always)]
    fn of(mailbox: &Mailbox) -> &AtomicPtr<Mailbox> {
        &mailbox.hand.next_resting
    }
}

/// Of guests: mailboxes of idle workers that another one will gulp.
pub(crate) struct Guest;

impl Link for Guest {
    #[inline(always)]
    fn of(mailbox: &Mailbox) -> &AtomicPtr<Mailbox> {
        &mailbox.next_guest
    }
}

/// A list, linked by one kind of link.
pub(crate) struct List<L> {
    first: Cell<*const Mailbox>,
    /// Of use only if there is a first.
    last: Cell<*const Mailbox>,
    link: PhantomData<L>,
}

impl<L: Link> List<L> {
    pub(crate) const fn new() -> Self {
        Self { first: Cell::new(ptr::null()), last: Cell::new(ptr::null()), link: PhantomData }
    }

    /// Whether there is one.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        !self.first.get().is_null()
    }

    /// The first.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<&'static Mailbox> {
        // SAFETY: mailboxes are never freed.
        unsafe { self.first.get().as_ref() }
    }

    /// All of them, in order. On the worker's core, with preemption off or in an interrupt: there, what is seen may be
    /// in the middle of being changed, but each link is null or leads to a mailbox.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &'static Mailbox> {
        let mut next = self.first();
        core::iter::from_fn(move || {
            let mailbox = next?;
            // Relaxed: the list is this core's.
            // SAFETY: mailboxes are never freed.
            next = unsafe { L::of(mailbox).load(Ordering::Relaxed).as_ref() };
            Some(mailbox)
        })
    }

    #[inline(always)]
    pub(crate) fn push(&self, mailbox: &Mailbox) {
        // Relaxed: the list is this core's.
        L::of(mailbox).store(ptr::null_mut(), Ordering::Relaxed);
        if self.any() {
            // SAFETY: there is a last one if there is a first, and mailboxes are never freed.
            let last = unsafe { &*self.last.get() };
            L::of(last).store(ptr::from_ref(mailbox).cast_mut(), Ordering::Relaxed);
        } else {
            self.first.set(mailbox);
        }
        self.last.set(mailbox);
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<&'static Mailbox> {
        let mailbox = self.first()?;
        // Relaxed: as above.
        self.first.set(L::of(mailbox).load(Ordering::Relaxed));
        Some(mailbox)
    }
}
