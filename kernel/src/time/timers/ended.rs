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

static CORES: [Ended; MAX_CORES] =
    [const { Ended { block: AtomicPtr::new(ptr::null_mut()), free: AtomicPtr::new(ptr::null_mut()) } };
        MAX_CORES];

/// Frees a block: later, if the caller is a core's loop between two turns.
///
/// # Safety
/// Nobody uses the block any more, and `free` frees it, on any core.
#[inline]
pub(super) unsafe fn free_later(block: *mut (), free: Free) {
    if StackBlock::current().process().is_null() && !percpu::core_block().is_null() {
        // Here the core is in its loop, so preemption is disabled.
        let ended = &CORES[percpu::core_number()];
        // Relaxed, everywhere: a core's loop alone uses its own.
        if ended.block.load(Ordering::Relaxed).is_null() {
            ended.block.store(block, Ordering::Relaxed);
            ended.free.store(free as *mut (), Ordering::Relaxed);
            return;
        }
    }
    // SAFETY: by contract.
    unsafe { free(block) };
}

/// Frees what was left. Called by the core's loop.
#[inline]
pub(crate) fn free(core: CoreId) {
    let ended = &CORES[core.index()];
    let block = ended.block.load(Ordering::Relaxed);
    if !block.is_null() {
        ended.block.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: both were stored together by `free_later`; the second is a `Free`, and that is a pointer.
        unsafe { core::mem::transmute::<*mut (), Free>(ended.free.load(Ordering::Relaxed))(block) };
    }
}
