//! The two thread-local words that stand in for `TPIDR_EL1` and `TPIDR_EL0`.

use core::cell::{Cell, UnsafeCell};
use core::num::NonZeroUsize;

use crate::arch::CoreId;

/// What a thread that no core loop runs on uses for its stack block: long enough for the preemption
/// word and the account word, which is all that code outside a core loop touches.
#[repr(C, align(64))]
struct FallbackBlock(UnsafeCell<[u64; 8]>);

#[cfg(shuttle)]
use shuttle::thread_local;

thread_local! {
    static CORE_BLOCK: Cell<*mut ()> = const { Cell::new(core::ptr::null_mut()) };
    static STACK_BLOCK: Cell<*mut ()> = const { Cell::new(core::ptr::null_mut()) };
    static CORE: Cell<CoreId> = const { Cell::new(CoreId::BOOT) };
    static FALLBACK: FallbackBlock = const { FallbackBlock(UnsafeCell::new([0; 8])) };
}

/// Announces that a thread will stand in for this core (host only): a simulation must know all of them before the first
/// goes to sleep.
pub fn announce_core(core: CoreId) {
    super::world::join(core);
}

/// Sets which core the calling thread stands in for (host only).
pub fn become_core(core: CoreId) {
    CORE.with(|cell| cell.set(core));
}

/// The core that the calling thread stands in for (host only).
pub(super) fn host_core() -> CoreId {
    CORE.with(Cell::get)
}

/// Sets this core's block pointer.
///
/// # Safety
/// `block` is what every user of [`core_block`] expects, and lives as long as the core runs.
pub unsafe fn set_core_block(block: *mut ()) {
    CORE_BLOCK.with(|cell| cell.set(block));
}

/// This core's block, or null before [`set_core_block`]. Valid only while preemption is disabled.
pub fn core_block() -> *mut () {
    CORE_BLOCK.with(Cell::get)
}

/// Sets the block of the stack that runs.
///
/// # Safety
/// `block` points to at least a preemption word and an account word, exclusively this stack's.
pub unsafe fn set_stack_block(block: *mut ()) {
    STACK_BLOCK.with(|cell| cell.set(block));
}

/// The block of the stack that the caller runs on; never null once the core's boot has set it.
#[inline(always)]
pub fn stack_block() -> *mut () {
    let block = STACK_BLOCK.with(Cell::get);
    if block.is_null() { FALLBACK.with(|fallback| fallback.0.get().cast()) } else { block }
}

/// What stands for this core where a lock says who holds it: its thread, also where that is none of a core's.
pub fn holder() -> NonZeroUsize {
    FALLBACK.with(|own| NonZeroUsize::MIN | core::ptr::from_ref(own).addr())
}

/// The number of this core, or 0 before the scheduler runs on it. Valid only while preemption is disabled.
///
/// By convention a core's block begins with its number.
#[inline(always)]
pub fn core_number() -> usize {
    let block = core_block().cast::<u64>();
    if block.is_null() {
        return 0;
    }
    // SAFETY: the block was set by the scheduler, and its first word is the core's number.
    unsafe { block.read() as usize }
}

/// The number of this core, if the scheduler runs on it. Valid only while preemption is disabled.
#[inline(always)]
pub fn core_number_if_any() -> Option<usize> {
    (!core_block().is_null()).then(core_number)
}
