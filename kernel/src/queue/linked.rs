//! Items that carry their own link, and the chains made of them.
//!
//! An intrusive list needs no memory to enqueue, so enqueueing cannot fail. The price is that an item is in
//! at most one list at a time.

use core::ptr::{self, NonNull};

use crate::arch::atomic::{AtomicPtr, Ordering};

/// An item with a link of its own.
///
/// # Safety
/// `link` returns the same field for the life of the item, and nothing but the lists of this module writes
/// it while the item is in one of them.
pub unsafe trait Linked: Sized {
    /// The link. What it holds outside a list has no meaning.
    ///
    /// # Safety
    /// The caller is one of the lists of this module, and the item is the list's.
    unsafe fn link(&self) -> &AtomicPtr<Self>;
}

/// The item after `item`, in whatever list it is in.
///
/// # Safety
/// `item` is valid and in a list that the caller alone may change.
#[inline(always)]
pub(super) unsafe fn next<T: Linked>(item: NonNull<T>) -> *mut T {
    // SAFETY: the caller's promise. Relaxed: the list was handed over with acquire, or under a lock.
    unsafe { item.as_ref().link() }.load(Ordering::Relaxed)
}

/// Makes `next` the item after `item`.
///
/// # Safety
/// As for [`next`].
#[inline(always)]
pub(super) unsafe fn set_next<T: Linked>(item: NonNull<T>, next: *mut T) {
    // SAFETY: the caller's promise. Relaxed: whoever hands the list over releases it.
    unsafe { item.as_ref().link() }.store(next, Ordering::Relaxed);
}

/// Items in order, oldest first, that belong to whoever holds the chain.
///
/// Dropping a chain that is not empty forgets its items; so the compiler warns when it is not used.
#[must_use = "the items of a chain that is dropped are lost"]
pub struct Chain<T: Linked> {
    first: *mut T,
    last: *mut T,
    len: usize,
}

// SAFETY: a chain owns the items it leads to; they were enqueued by code that promised that they may be
// handed to any core.
unsafe impl<T: Linked> Send for Chain<T> {}

impl<T: Linked> Chain<T> {
    /// A chain of nothing.
    pub const fn new() -> Self {
        Self { first: ptr::null_mut(), last: ptr::null_mut(), len: 0 }
    }

    /// How many items there are.
    pub const fn len(&self) -> usize {
        self.len
    }

    /// Whether there are none.
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Puts an item at the end.
    ///
    /// # Safety
    /// The item is valid until it is popped, is in no list, and may be handed to any core.
    pub unsafe fn push_back(&mut self, item: NonNull<T>) {
        // SAFETY: the item is the caller's to link.
        unsafe { set_next(item, ptr::null_mut()) };
        match NonNull::new(self.last) {
            // SAFETY: the last item is in this chain, which the caller holds exclusively.
            Some(last) => unsafe { set_next(last, item.as_ptr()) },
            None => self.first = item.as_ptr(),
        }
        self.last = item.as_ptr();
        self.len += 1;
    }

    /// Takes the oldest item.
    pub fn pop_front(&mut self) -> Option<NonNull<T>> {
        let item = NonNull::new(self.first)?;
        // SAFETY: the item is in this chain, which the caller holds exclusively.
        self.first = unsafe { next(item) };
        if self.first.is_null() {
            self.last = ptr::null_mut();
        } else {
            // SAFETY: as above. A collection would take a stale link for a pointer.
            unsafe { set_next(item, ptr::null_mut()) };
        }
        self.len -= 1;
        Some(item)
    }

    /// Moves all of `later` behind what is here.
    pub fn append(&mut self, later: Self) {
        let Some(first) = NonNull::new(later.first) else { return };
        match NonNull::new(self.last) {
            // SAFETY: the last item is in this chain, which the caller holds exclusively.
            Some(last) => unsafe { set_next(last, first.as_ptr()) },
            None => self.first = first.as_ptr(),
        }
        self.last = later.last;
        self.len += later.len;
    }

    /// The items from `newest` on, linked newest first and ended by null, turned round.
    ///
    /// # Safety
    /// They are valid until popped, and the caller owns them all.
    pub(super) unsafe fn reversed(newest: *mut T) -> Self {
        let mut chain = Self { first: ptr::null_mut(), last: newest, len: 0 };
        let mut rest = newest;
        while let Some(item) = NonNull::new(rest) {
            // SAFETY: the caller owns the items.
            rest = unsafe { next(item) };
            // SAFETY: as above.
            unsafe { set_next(item, chain.first) };
            chain.first = item.as_ptr();
            chain.len += 1;
        }
        chain
    }
}

impl<T: Linked> Default for Chain<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Linked> Iterator for Chain<T> {
    type Item = NonNull<T>;

    fn next(&mut self) -> Option<NonNull<T>> {
        self.pop_front()
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T: Linked> ExactSizeIterator for Chain<T> {}
