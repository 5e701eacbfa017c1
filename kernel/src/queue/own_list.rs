//! A list that its owner alone puts into and takes from, and whose length anybody may read.
//!
//! First in, first out, of items that carry their own link: so it takes no memory, and no lock.

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use super::linked::{Chain, Linked};
use crate::arch::atomic::{AtomicUsize, Ordering, const_fn};

/// An unbounded list of items in order of arrival.
pub struct OwnList<T: Linked> {
    items: UnsafeCell<Chain<T>>,
    // Written by the owner alone.
    len: AtomicUsize,
}

// SAFETY: the items are touched by the owner alone, as whoever calls `push` and `pop` promises; the length is atomic.
unsafe impl<T: Linked> Sync for OwnList<T> {}

impl<T: Linked> OwnList<T> {
    const_fn! {
        /// An empty list.
        pub fn new() -> Self {
            Self { items: UnsafeCell::new(Chain::new()), len: AtomicUsize::new(0) }
        }
    }

    /// Puts an item at the end.
    ///
    /// # Safety
    /// The caller is the owner, or acts for it alone. The item is valid until it is popped, and in no list.
    #[inline(always)]
    pub unsafe fn push(&self, item: NonNull<T>) {
        // SAFETY: the owner alone touches the items, and none of it is interrupted by a call of these functions.
        let items = unsafe { &mut *self.items.get() };
        // SAFETY: the caller's promise.
        unsafe { items.push_back(item) };
        // Relaxed, here and below: a hint. A caller that must not miss an item looks after a full fence.
        self.len.store(items.len(), Ordering::Relaxed);
    }

    /// Takes the oldest item.
    ///
    /// # Safety
    /// The caller is the owner, or acts for it alone.
    #[inline(always)]
    pub unsafe fn pop(&self) -> Option<NonNull<T>> {
        // SAFETY: as in `push`.
        let items = unsafe { &mut *self.items.get() };
        let item = items.pop_front()?;
        self.len.store(items.len(), Ordering::Relaxed);
        Some(item)
    }

    /// How many items there are; may be outdated before the caller sees it, unless that is the owner.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether there are none; likewise.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Linked> Default for OwnList<T> {
    fn default() -> Self {
        Self::new()
    }
}
