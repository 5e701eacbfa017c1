//! A table in memory that the heap sets aside at its start. Its length is known then, and it stays for ever.
//!
//! What an entry means, and how accesses are ordered, is up to the table's owner.

use core::ptr::{self, NonNull};

use crate::arch::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::arch::zero;

/// The table.
pub(super) struct Reserved<T> {
    first: AtomicPtr<T>,
    count: AtomicUsize,
}

impl<T> Reserved<T> {
    /// A table without entries.
    pub(super) const fn empty() -> Self {
        Self { first: AtomicPtr::new(ptr::null_mut()), count: AtomicUsize::new(0) }
    }

    /// Gives it its entries, each as made by `zero`. They are a fiftieth of the machine's memory, so this is most of what a boot
    /// does.
    ///
    /// # Safety
    /// `memory` has room for so many, is aligned for them, and is used for nothing else. Called once, before anything else.
    /// All bytes of what `zero` makes are zero.
    pub(super) unsafe fn init(&self, memory: NonNull<u8>, count: usize, zero: impl Fn() -> T) {
        let first = memory.cast::<T>();
        // SAFETY: the caller promised room for that many entries, used for nothing else; it is the heap's, so it is
        // ordinary memory, mapped.
        unsafe { zero::fill(first, count, zero) };
        // Relaxed, here and below: boot does this before there is another core, and starting that orders it.
        self.first.store(first.as_ptr(), Ordering::Relaxed);
        self.count.store(count, Ordering::Relaxed);
    }

    /// How many entries there are.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// One of them.
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        if index >= self.count() {
            return None;
        }
        // SAFETY: `init` made so many, and they stay.
        Some(unsafe { &*self.first.load(Ordering::Relaxed).add(index) })
    }

    /// All of them.
    pub(super) fn all(&self) -> &[T] {
        let first = self.first.load(Ordering::Relaxed);
        // SAFETY: as above.
        NonNull::new(first)
            .map_or(&[], |first| unsafe { core::slice::from_raw_parts(first.as_ptr(), self.count()) })
    }
}
