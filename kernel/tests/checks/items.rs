//! What the checks put into queues: items that know whether they were taken once.

use alloc::vec::Vec;
use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

use crate::arch::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::queue::Linked;

/// An item with a number that its producer writes just before it is enqueued.
pub struct Item {
    link: AtomicPtr<Item>,
    taken: AtomicU32,
    // No atomic: a queue that does not publish it is caught by miri and ThreadSanitizer.
    number: UnsafeCell<usize>,
}

// SAFETY: `number` is written by the producer before the item is enqueued and read by its taker: that the
// queue orders the two is what is checked.
unsafe impl Sync for Item {}

// SAFETY: always the same field, which only the lists write.
unsafe impl Linked for Item {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

/// Items that outlive the queue they go through.
pub struct Items(Vec<Item>);

impl Items {
    /// `count` items that nobody has taken.
    pub fn new(count: usize) -> Self {
        let blank = || Item {
            link: AtomicPtr::new(ptr::null_mut()),
            taken: AtomicU32::new(0),
            number: UnsafeCell::new(usize::MAX),
        };
        Self((0..count).map(|_| blank()).collect())
    }

    /// The item `number`, with its number written, ready to be enqueued.
    pub fn prepare(&self, number: usize) -> NonNull<Item> {
        let item = &self.0[number];
        // SAFETY: no queue has the item yet, so nobody else looks at it.
        unsafe { *item.number.get() = number };
        NonNull::from(item)
    }

    /// Records that `item` came out of a queue. Returns its number.
    pub fn take(&self, item: NonNull<Item>) -> usize {
        // SAFETY: the queue handed out a pointer that was put in, and the items outlive the queue.
        let item = unsafe { item.as_ref() };
        // SAFETY: the producer wrote it before it enqueued the item, and nobody writes it after.
        let number = unsafe { *item.number.get() };
        assert!(ptr::eq(item, &raw const self.0[number]), "item {number} does not carry its own number");
        // Relaxed: a count.
        assert_eq!(item.taken.fetch_add(1, Ordering::Relaxed), 0, "item {number} was taken twice");
        number
    }

    /// How many were taken.
    pub fn taken(&self) -> usize {
        self.0.iter().filter(|item| item.taken.load(Ordering::Relaxed) == 1).count()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Panics unless each was taken.
    pub fn assert_all_taken(&self) {
        for (number, item) in self.0.iter().enumerate() {
            assert_eq!(item.taken.load(Ordering::Relaxed), 1, "item {number} was lost");
        }
    }
}
