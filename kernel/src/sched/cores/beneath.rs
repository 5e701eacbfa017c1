//! A turn that lies beneath another on its core: it was left for something urgent, which has the next turn at once, and comes into a queue when that one
//! is over, or has had a slice. So the way from an interrupt to what it wakes does not lead through a queue for who made way.
//!
//! When a turn is left so, and by whom it is put into a queue, is told in `run/beneath.rs`.

use core::cell::Cell;
use core::ptr::{self, NonNull};

use crate::sched::process::Header;

/// At most one. Its core alone uses it, in its loop or with interrupts masked.
pub(crate) struct Beneath {
    process: Cell<*mut Header>,
    left_at: Cell<u64>,
    is_young: Cell<bool>,
}

/// What was left.
pub(crate) struct Left {
    /// Whose turn it was. It is suspended, and in no queue.
    pub process: NonNull<Header>,
    /// When, in clock ticks.
    pub at: u64,
    /// Whether its turn had seen no slice end.
    pub is_young: bool,
}

impl Beneath {
    pub(crate) const fn new() -> Self {
        Self { process: Cell::new(ptr::null_mut()), left_at: Cell::new(0), is_young: Cell::new(false) }
    }

    /// Whether there is one.
    #[inline(always)]
    pub(crate) fn is_some(&self) -> bool {
        !self.process.get().is_null()
    }

    /// There is one from now on, where there was none.
    #[inline(always)]
    pub(crate) fn put(&self, left: &Left) {
        debug_assert!(!self.is_some(), "two turns lie beneath one");
        self.left_at.set(left.at);
        self.is_young.set(left.is_young);
        self.process.set(left.process.as_ptr());
    }

    /// Takes it.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<Left> {
        let process = NonNull::new(self.process.replace(ptr::null_mut()))?;
        Some(Left { process, at: self.left_at.get(), is_young: self.is_young.get() })
    }
}
