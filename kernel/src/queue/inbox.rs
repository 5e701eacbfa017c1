//! The inbox: other cores enqueue into it for a core, and whoever comes first drains it.
//!
//! A list that grows at its head and is taken whole:
//!
//! - *push*: point the item at the head, exchange the head from what it was to the item, again until it
//!   holds;
//! - *take all*: swap the head with null, and turn the list round, so that it is oldest first.
//!
//! There is no ABA: a push cares only that the head is still the pointer it linked to, and the list behind
//! an equal pointer is the right list whatever happened meanwhile; nobody ever takes a single item off a
//! shared list. Thieves drain it in the same way as its owner.
//!
//! Orderings: the push's exchange is a release and the take's swap an acquire, so the taker sees what each
//! producer wrote before its push; for all but the newest because each later push is a read-modify-write,
//! which continues the release sequence of the one before.

use core::ptr::{self, NonNull};

use super::linked::{Chain, Linked, set_next};
use crate::arch::atomic::{AtomicPtr, Ordering, const_fn};

/// A list of items in order of arrival. Pushing needs no memory and cannot fail.
pub struct Inbox<T: Linked> {
    newest: AtomicPtr<T>,
}

impl<T: Linked> Inbox<T> {
    const_fn! {
        /// An empty inbox.
        pub fn new() -> Self {
            Self { newest: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    /// Enqueues an item; says whether the inbox was empty before.
    ///
    /// # Safety
    /// The item is valid until it is taken, is in no list, and may be handed to any core.
    pub unsafe fn push(&self, item: NonNull<T>) -> bool {
        // Relaxed: the exchange checks it, and nothing behind it is read.
        let mut newest = self.newest.load(Ordering::Relaxed);
        // Release: pairs with the acquire in `take_all`.
        let release = Ordering::Release;
        loop {
            // SAFETY: the item is the caller's until the exchange succeeds.
            unsafe { set_next(item, newest) };
            // Relaxed on failure: as for the load above.
            match self.newest.compare_exchange_weak(newest, item.as_ptr(), release, Ordering::Relaxed) {
                Ok(_) => return newest.is_null(),
                Err(now) => newest = now,
            }
        }
    }

    /// Takes everything, oldest first. Anybody may call it; of several, one gets the items.
    pub fn take_all(&self) -> Chain<T> {
        // Relaxed: a hint that spares an empty inbox the exclusive store. A caller that must not miss a push looks
        // after a full fence, which orders this load too.
        if self.is_empty() {
            return Chain::new();
        }
        // Acquire: pairs with the release in `push`.
        let newest = self.newest.swap(ptr::null_mut(), Ordering::Acquire);
        // SAFETY: the swap took the list out of everybody's reach, and its items are valid until popped.
        unsafe { Chain::reversed(newest) }
    }

    /// Whether there is nothing; may be outdated before the caller sees it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        // Relaxed: see `take_all`.
        self.newest.load(Ordering::Relaxed).is_null()
    }
}

impl<T: Linked> Default for Inbox<T> {
    fn default() -> Self {
        Self::new()
    }
}
