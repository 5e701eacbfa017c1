//! The overflow list: what a full deque has no room for.
//!
//! A locked list, first in, first out; its owner and thieves take from it alike. The length can be read
//! without the lock, so a core that looks for work passes by an empty list for the price of one load.

use core::ptr::NonNull;

use super::linked::{Chain, Linked};
use crate::arch::atomic::{AtomicUsize, Ordering, const_fn};
use crate::sync::SpinLock;

/// An unbounded list of items in order of arrival.
pub struct Overflow<T: Linked> {
    items: SpinLock<Chain<T>>,
    // Written under the lock alone.
    len: AtomicUsize,
}

impl<T: Linked> Overflow<T> {
    const_fn! {
        /// An empty list.
        pub fn new() -> Self {
            Self { items: SpinLock::new(Chain::new()), len: AtomicUsize::new(0) }
        }
    }

    /// Puts an item at the end.
    ///
    /// # Safety
    /// The item is valid until it is popped, is in no list, and may be handed to any core.
    #[inline(always)]
    pub unsafe fn push(&self, item: NonNull<T>) {
        let mut items = self.items.lock();
        // SAFETY: the caller's promise.
        unsafe { items.push_back(item) };
        // Relaxed, here and below: a hint. A caller that must not miss an item looks after a full fence.
        self.len.store(items.len(), Ordering::Relaxed);
    }

    /// Takes the oldest item. Anybody may call it.
    pub fn pop(&self) -> Option<NonNull<T>> {
        if self.is_empty() {
            return None;
        }
        let mut items = self.items.lock();
        let item = items.pop_front();
        self.len.store(items.len(), Ordering::Relaxed);
        item
    }

    /// Takes half of the items, rounded up, at most `cap`, oldest first. Anybody may call it.
    pub fn steal_half(&self, cap: usize) -> Chain<T> {
        self.take(|len| len.div_ceil(2).min(cap))
    }

    /// Takes up to so many items, oldest first. Anybody may call it.
    pub fn take_some(&self, most: usize) -> Chain<T> {
        self.take(|len| len.min(most))
    }

    fn take(&self, how_many: impl FnOnce(usize) -> usize) -> Chain<T> {
        let mut taken = Chain::new();
        if self.is_empty() {
            return taken;
        }
        let mut items = self.items.lock();
        for _ in 0..how_many(items.len()) {
            let Some(item) = items.pop_front() else { break };
            // SAFETY: the item was in this list, on the same terms.
            unsafe { taken.push_back(item) };
        }
        self.len.store(items.len(), Ordering::Relaxed);
        taken
    }

    /// How many items there are; may be outdated before the caller sees it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Relaxed)
    }

    /// Whether there are none; may be outdated before the caller sees it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T: Linked> Default for Overflow<T> {
    fn default() -> Self {
        Self::new()
    }
}
