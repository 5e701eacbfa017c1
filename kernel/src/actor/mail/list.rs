//! Lists of mailboxes that a worker will look at, in the order in which they came.
//!
//! Touched on the worker's core only, with preemption off. A list is linked through the mailboxes. A mailbox may be in several lists at
//! once, and in one of them twice, in different roles: each role has a link of its own, and who may use that says the flag that goes with the role.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ptr;

use super::Mailbox;
use crate::arch::atomic::{AtomicPtr, Ordering};

/// A mailbox in a list, in the role that it has there.
pub(crate) trait Entry: Copy {
    /// As a pointer that is not null.
    fn into_raw(self) -> *mut ();

    /// # Safety
    /// Made by [`Self::into_raw`].
    unsafe fn from_raw(raw: *mut ()) -> Self;

    /// Where the next one is, or null.
    fn link(self) -> &'static AtomicPtr<()>;
}

/// In a run list: what waits for its turn with the list's worker.
#[derive(Clone, Copy)]
pub(crate) enum Waiting {
    /// In hand, with mail there. Who has the mailbox in hand uses this link.
    Held(&'static Mailbox),
    /// A guest, with mail in its queue. Who has claimed its [guest flag](super::guest_flag::GuestFlag) uses this link.
    Guest(&'static Mailbox),
}

/// A mailbox is aligned, so this is free in its address.
const GUEST: usize = 1;

impl Waiting {
    /// Whether it is in hand.
    #[inline(always)]
    pub(crate) fn held(self) -> Option<&'static Mailbox> {
        match self {
            Self::Held(mailbox) => Some(mailbox),
            Self::Guest(_) => None,
        }
    }

    /// Whether it is a guest.
    #[inline(always)]
    pub(crate) fn guest(self) -> Option<&'static Mailbox> {
        match self {
            Self::Held(_) => None,
            Self::Guest(mailbox) => Some(mailbox),
        }
    }
}

impl Entry for Waiting {
    #[inline(always)]
    fn into_raw(self) -> *mut () {
        match self {
            Self::Held(mailbox) => ptr::from_ref(mailbox).cast_mut().cast(),
            Self::Guest(mailbox) => ptr::from_ref(mailbox).cast_mut().cast::<()>().wrapping_byte_add(GUEST),
        }
    }

    #[inline(always)]
    unsafe fn from_raw(raw: *mut ()) -> Self {
        let is_guest = raw.addr() & GUEST != 0;
        let mailbox = raw.map_addr(|address| address & !GUEST).cast::<Mailbox>();
        // SAFETY: by contract a mailbox, and these are never freed.
        let mailbox = unsafe { &*mailbox };
        if is_guest { Self::Guest(mailbox) } else { Self::Held(mailbox) }
    }

    #[inline(always)]
    fn link(self) -> &'static AtomicPtr<()> {
        match self {
            Self::Held(mailbox) => &mailbox.hand.next,
            Self::Guest(mailbox) => &mailbox.next_guest,
        }
    }
}

/// In the list of what a worker has in hand and may be at rest.
#[derive(Clone, Copy)]
pub(crate) struct Resting(pub &'static Mailbox);

impl Entry for Resting {
    #[inline(always)]
    fn into_raw(self) -> *mut () {
        ptr::from_ref(self.0).cast_mut().cast()
    }

    #[inline(always)]
    unsafe fn from_raw(raw: *mut ()) -> Self {
        // SAFETY: by contract a mailbox, and these are never freed.
        Self(unsafe { &*raw.cast::<Mailbox>() })
    }

    #[inline(always)]
    fn link(self) -> &'static AtomicPtr<()> {
        &self.0.hand.next_resting
    }
}

/// A list.
pub(crate) struct List<E> {
    first: Cell<*mut ()>,
    /// Of use only if there is a first.
    last: Cell<*mut ()>,
    entries: PhantomData<E>,
}

/// A place in a list: behind an entry.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct End(*mut ());

impl End {
    /// Behind none.
    pub(crate) const NONE: Self = Self(ptr::null_mut());

    /// Behind this entry.
    pub(crate) fn behind(entry: impl Entry) -> Self {
        Self(entry.into_raw())
    }

    /// Whether it is behind this entry.
    #[inline(always)]
    pub(crate) fn is(self, entry: impl Entry) -> bool {
        self.0 == entry.into_raw()
    }
}

impl<E: Entry> List<E> {
    pub(crate) const fn new() -> Self {
        Self { first: Cell::new(ptr::null_mut()), last: Cell::new(ptr::null_mut()), entries: PhantomData }
    }

    /// Whether there is one.
    #[inline(always)]
    pub(crate) fn any(&self) -> bool {
        !self.first.get().is_null()
    }

    /// The first.
    #[inline(always)]
    pub(crate) fn first(&self) -> Option<E> {
        entry(self.first.get())
    }

    /// The one behind this entry of the list.
    pub(crate) fn after(&self, before: E) -> Option<E> {
        // Relaxed: the list is this core's.
        if self.end().is(before) { None } else { entry(before.link().load(Ordering::Relaxed)) }
    }

    /// The first, if there is no other.
    pub(crate) fn sole(&self) -> Option<E> {
        if self.first.get() == self.last.get() { self.first() } else { None }
    }

    /// Where it ends now.
    pub(crate) fn end(&self) -> End {
        if self.any() { End(self.last.get()) } else { End::NONE }
    }

    /// All of them, in order. On the worker's core, with preemption off or in an interrupt: there, what is seen may be
    /// in the middle of being changed, but each link is null or leads to a mailbox.
    pub(crate) fn iter(&self) -> impl Iterator<Item = E> {
        let mut next = self.first();
        core::iter::from_fn(move || {
            let this = next?;
            // Relaxed: the list is this core's.
            next = entry(this.link().load(Ordering::Relaxed));
            Some(this)
        })
    }

    /// Nothing is in it any more. The links of what was stay as they are.
    pub(crate) fn give_up(&self) {
        self.first.set(ptr::null_mut());
    }

    #[inline(always)]
    pub(crate) fn push(&self, new: E) {
        // Relaxed: the list is this core's.
        new.link().store(ptr::null_mut(), Ordering::Relaxed);
        let raw = new.into_raw();
        match self.first() {
            None => self.first.set(raw),
            Some(_) => {
                // SAFETY: there is a last one if there is a first.
                unsafe { E::from_raw(self.last.get()) }.link().store(raw, Ordering::Relaxed);
            }
        }
        self.last.set(raw);
    }

    /// All up to there come behind the others from now on. It is a place in this list, or behind none.
    pub(crate) fn rotate(&self, End(end): End) {
        let (first, last) = (self.first.get(), self.last.get());
        if end.is_null() || !self.any() || end == last {
            return;
        }
        debug_assert!(self.iter().any(|entry| entry.into_raw() == end), "a place that is not in the list");
        // SAFETY: both are in the list.
        let (end_of_front, end_of_rest) = unsafe { (E::from_raw(end), E::from_raw(last)) };
        // Relaxed, all: the list is this core's. In this order, because an interrupt in between may see a part of it, and no circle.
        let rest = end_of_front.link().load(Ordering::Relaxed);
        end_of_front.link().store(ptr::null_mut(), Ordering::Relaxed);
        self.first.set(rest);
        end_of_rest.link().store(first, Ordering::Relaxed);
        self.last.set(end);
    }

    #[inline(always)]
    pub(crate) fn pop(&self) -> Option<E> {
        let this = self.first()?;
        // Relaxed: as above.
        self.first.set(this.link().load(Ordering::Relaxed));
        Some(this)
    }
}

#[inline(always)]
fn entry<E: Entry>(raw: *mut ()) -> Option<E> {
    // SAFETY: what is in a list was made by `into_raw`.
    (!raw.is_null()).then(|| unsafe { E::from_raw(raw) })
}
