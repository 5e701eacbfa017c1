//! A list that anybody may add to and read, without a lock, and from which nothing is ever removed.

use core::iter;
use core::ptr::{self, NonNull};

use super::linked::{Linked, set_next};
use crate::arch::atomic::{AtomicPtr, Ordering, const_fn};

/// The list, newest first. Because nothing is removed, there is no ABA, and whoever reads an item may keep it.
pub struct AppendOnly<T: Linked> {
    newest: AtomicPtr<T>,
}

impl<T: Linked> AppendOnly<T> {
    const_fn! {
        /// A list of nothing.
        pub fn new() -> Self {
            Self { newest: AtomicPtr::new(ptr::null_mut()) }
        }
    }

    /// Adds an item.
    ///
    /// # Safety
    /// It is valid for ever, in no other list and not in this one, and may be read by any core.
    pub unsafe fn push(&self, item: NonNull<T>) {
        // Relaxed: the exchange decides.
        let mut newest = self.newest.load(Ordering::Relaxed);
        loop {
            // SAFETY: the item is the caller's until it is published.
            unsafe { set_next(item, newest) };
            // Release: publishes the item; pairs with the acquire in `iter`.
            match self.newest.compare_exchange(newest, item.as_ptr(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => newest = other,
            }
        }
    }

    /// Whether nothing was added yet.
    pub fn is_empty(&self) -> bool {
        // Relaxed: nothing is read because of it.
        self.newest.load(Ordering::Relaxed).is_null()
    }

    /// The items that were there when it was called.
    pub fn iter(&self) -> impl Iterator<Item = NonNull<T>> {
        // Acquire: pairs with the release in `push`, and with those of all older items, too: each exchange continues the
        // release sequence of the one before.
        let newest = NonNull::new(self.newest.load(Ordering::Acquire));
        // SAFETY: items are valid for ever, and their links do not change once they are published.
        // Relaxed: ordered by the acquire above.
        iter::successors(newest, |item| NonNull::new(unsafe { item.as_ref().link() }.load(Ordering::Relaxed)))
    }
}

impl<T: Linked> Default for AppendOnly<T> {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::AppendOnly;
    use crate::arch::atomic::AtomicPtr;
    use crate::queue::Linked;
    use std::boxed::Box;
    use std::ptr::{NonNull, null_mut};
    use std::vec::Vec;

    struct Item {
        link: AtomicPtr<Item>,
        number: usize,
    }

    // SAFETY: `link` is one field, used by nothing but the list.
    unsafe impl Linked for Item {
        unsafe fn link(&self) -> &AtomicPtr<Self> {
            &self.link
        }
    }

    #[test]
    fn what_many_add_is_all_there_and_each_ones_newest_comes_first() {
        const EACH: usize = 500;
        static LIST: AppendOnly<Item> = AppendOnly::new();
        std::thread::scope(|scope| {
            for thread in 0..4 {
                scope.spawn(move || {
                    for number in 0..EACH {
                        let number = thread * EACH + number;
                        let item = Box::leak(Box::new(Item { link: AtomicPtr::new(null_mut()), number }));
                        // SAFETY: leaked just now.
                        unsafe { LIST.push(NonNull::from(item)) };
                    }
                });
            }
        });
        // SAFETY: leaked items are valid for ever.
        let numbers: Vec<usize> = LIST.iter().map(|item| unsafe { item.as_ref() }.number).collect();
        for thread in 0..4 {
            let own: Vec<usize> = numbers.iter().copied().filter(|number| number / EACH == thread).collect();
            assert_eq!(own, (thread * EACH..(thread + 1) * EACH).rev().collect::<Vec<_>>());
        }
    }
}
