//! The memory of a delayed call that has been handed on, for as long as it takes to run what is urgent.
//!
//! The core's loop fires timers, and what they wake may be urgent. To free the memory of one takes as long as much of what is between the
//! moment and the first instruction of what was woken. So the loop puts it here, and frees it when it does what else is due between turns
//! ([`free`]). There is room for one for each core; the next is freed at once. A core that falls asleep may keep one.

use core::ptr;

use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::arch::{CoreId, MAX_CORES, percpu};
use crate::mem::stack::StackBlock;

/// Frees what it is handed.
pub(super) type Free = unsafe fn(*mut ());

struct Ended {
    block: AtomicPtr<()>,
    /// A `Free`, if there is a block.
    free: AtomicPtr<()>,
}

impl Ended {
    const fn new() -> Self {
        Self { block: AtomicPtr::new(ptr::null_mut()), free: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Keeps a block to be freed later. Whether there was room.
    ///
    /// # Safety
    /// The caller is the core's loop. If there was room, nobody uses the block any more, and `free` frees it, on any core.
    #[inline(always)]
    unsafe fn keep(&self, block: *mut (), free: Free) -> bool {
        // Relaxed, everywhere: a core's loop alone uses its own.
        if !self.block.load(Ordering::Relaxed).is_null() {
            return false;
        }
        self.block.store(block, Ordering::Relaxed);
        self.free.store(free as *mut (), Ordering::Relaxed);
        true
    }

    /// Frees what is kept, if there is any. The caller is the core's loop.
    #[inline(always)]
    fn free(&self) {
        let block = self.block.load(Ordering::Relaxed);
        if !block.is_null() {
            self.block.store(ptr::null_mut(), Ordering::Relaxed);
            // SAFETY: both were stored together by `keep`; the second is a `Free`, and that is a pointer.
            unsafe { core::mem::transmute::<*mut (), Free>(self.free.load(Ordering::Relaxed))(block) };
        }
    }
}

static CORES: [Ended; MAX_CORES] = [const { Ended::new() }; MAX_CORES];

/// Frees a block: later, if the caller is a core's loop between two turns.
///
/// # Safety
/// Nobody uses the block any more, and `free` frees it, on any core.
#[inline]
pub(super) unsafe fn free_later(block: *mut (), free: Free) {
    let is_loop = StackBlock::current().process().is_null() && !percpu::core_block().is_null();
    // SAFETY: between two turns the core is in its loop, so preemption is disabled; the rest by contract.
    let is_kept = is_loop && unsafe { CORES[percpu::core_number()].keep(block, free) };
    if !is_kept {
        // SAFETY: by contract.
        unsafe { free(block) };
    }
}

/// Frees what was left. Called by the core's loop.
#[inline]
pub(crate) fn free(core: CoreId) {
    CORES[core.index()].free();
}

#[cfg(test)]
mod tests {
    use super::Ended;
    use std::cell::Cell;

    /// Counts how often it was freed.
    unsafe fn note_freed(block: *mut ()) {
        // SAFETY: the tests keep nothing but cells, which outlive what keeps them.
        let freed = unsafe { &*block.cast::<Cell<u32>>() };
        freed.set(freed.get() + 1);
    }

    fn keep(ended: &Ended, block: &Cell<u32>) -> bool {
        // SAFETY: it is not freed in earnest, and the test is alone with it.
        unsafe { ended.keep(core::ptr::from_ref(block).cast_mut().cast(), note_freed) }
    }

    #[test]
    fn one_is_kept_and_freed_once() {
        let (ended, first, second) = (Ended::new(), Cell::new(0), Cell::new(0));
        ended.free();
        assert!(keep(&ended, &first), "there was no room at the beginning");
        assert!(!keep(&ended, &second), "there was room for two");
        assert_eq!((first.get(), second.get()), (0, 0), "one was freed too early");
        ended.free();
        ended.free();
        assert_eq!((first.get(), second.get()), (1, 0), "not the one that was kept was freed, once");
        assert!(keep(&ended, &second), "there was no room after the first");
        ended.free();
        assert_eq!((first.get(), second.get()), (1, 1));
    }
}
