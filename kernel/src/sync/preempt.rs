//! Disabling preemption: a count in the block of the running stack.
//!
//! The count travels with the code: it lies in the stack block (see `docs/architecture.md`, "Contexts
//! and preemption"), not in the core's block, because code can be moved to another core between reading
//! and writing a per-core count. Only code on that stack, and interrupts taken on it, touch the word,
//! so plain loads and stores suffice.
//!
//! When an interrupt finds that a preemption is due, inside a section that must not be preempted, it says so in the word beside the
//! count; leaving the outermost section then enters the preemption handler. It is a word of its own, because an interrupt may come
//! between the load of the count and the store: that store would take back what the interrupt had put into the same word.

use core::marker::PhantomData;
use core::sync::atomic::compiler_fence;

use crate::arch::atomic::{AtomicU32, Ordering, const_fn};
use crate::arch::percpu;

/// A preemption is due.
const DUE: u32 = 1;
/// It was an interrupt that found it due, and has noted when.
const NOTED: u32 = 2;
/// It may be due with one section left: see [`PreemptWord::request_early`].
const EARLY: u32 = 4;

/// The beginning of every stack block: how many sections disable preemption, and whether one is due.
#[repr(C)]
pub struct PreemptWord {
    count: AtomicU32,
    due: AtomicU32,
}

impl PreemptWord {
    const_fn! {
        /// A word that disables preemption `count` times.
        pub fn new(count: u32) -> Self {
            Self { count: AtomicU32::new(count), due: AtomicU32::new(0) }
        }
    }

    /// Whether a preemption may happen now.
    pub fn is_enabled(&self) -> bool {
        self.load() == 0
    }

    /// Whether preemption is disabled once only: an interrupt handler that has done so interrupted what may be preempted.
    pub fn is_held_once(&self) -> bool {
        self.load() == 1
    }

    /// Disables preemption, for an interrupt handler or another section that must not end with a trap.
    pub fn hold(&self) {
        self.store(self.load() + 1);
    }

    /// Ends what [`hold`](Self::hold) began. A request made meanwhile is left to the caller that began the section.
    pub fn release(&self) {
        self.store(self.load() - 1);
    }

    /// Remembers that a preemption is due, for when the section ends.
    pub fn request(&self) {
        self.due.store(self.due() | DUE, Ordering::Relaxed);
    }

    /// The same, for when the section ends, or all but one: that may be the application's own.
    pub(crate) fn request_early(&self) {
        self.due.store(self.due() | DUE | EARLY, Ordering::Relaxed);
    }

    /// Whether that is remembered.
    #[inline(always)]
    pub fn is_requested(&self) -> bool {
        self.due() != 0
    }

    /// An interrupt has requested a preemption, and is about to note when. Whether it is the first one in this section.
    pub(crate) fn is_noted_first(&self) -> bool {
        let due = self.due();
        self.due.store(due | NOTED, Ordering::Relaxed);
        due & NOTED == 0
    }

    /// Whether an interrupt has noted when it requested a preemption, which has not happened yet.
    pub(crate) fn has_noted(&self) -> bool {
        self.due() & NOTED != 0
    }

    /// Forgets a request: it finds nothing to do any more, or the caller looks itself, after this.
    #[inline(always)]
    pub fn clear_request(&self) {
        self.due.store(0, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    #[inline(always)]
    fn due(&self) -> u32 {
        // Relaxed: as in `load`.
        self.due.load(Ordering::Relaxed)
    }

    /// Sets the word for a stack that begins a new life with preemption disabled `count` times.
    pub fn reset(&self, count: u32) {
        self.clear_request();
        self.store(count);
    }

    /// A turn begins: preemption is enabled. One that has become due since the turn was chosen happens at once.
    #[inline(always)]
    pub(crate) fn enable(&self) {
        self.store(0);
        // As at the end of a section.
        compiler_fence(Ordering::SeqCst);
        if self.is_requested() {
            crate::arch::switch::preempt_trap();
        }
    }

    /// A turn has ended: preemption is disabled once.
    #[inline(always)]
    pub(crate) fn disable(&self) {
        self.store(1);
        compiler_fence(Ordering::SeqCst);
    }

    /// How many sections there are: what the beginning or end of one reads.
    #[inline(always)]
    pub fn load(&self) -> u32 {
        // Relaxed: only this stack's code and interrupts on it ever touch the word.
        self.count.load(Ordering::Relaxed)
    }

    /// What it writes back.
    #[inline(always)]
    pub fn store(&self, value: u32) {
        // Relaxed: as for `load`. The compiler fences in the guard keep the section's accesses inside.
        self.count.store(value, Ordering::Relaxed);
    }

    /// The word of the stack that the caller runs on.
    #[inline(always)]
    fn current() -> &'static Self {
        // SAFETY: a stack block begins with a preemption word (the contract of `set_stack_block`), and
        // is never unmapped while code runs on its stack. The reference is not kept across a switch of
        // stacks by anyone, as it is private to this file.
        unsafe { &*percpu::stack_block().cast::<Self>() }
    }
}

/// Proof that preemption is disabled: as long as one lives, the running code stays on its core.
///
/// Not `Send`: it belongs to the stack it was made on.
pub struct PreemptGuard {
    _not_send: PhantomData<*mut ()>,
}

impl PreemptGuard {
    /// Disables preemption until the guard is dropped. Guards nest.
    #[inline(always)]
    pub fn new() -> Self {
        // In a model the threads share one stack block, and nothing is ever preempted.
        #[cfg(not(any(loom, shuttle)))]
        {
            let word = PreemptWord::current();
            word.store(word.load() + 1);
            // Keeps the compiler from moving the section's accesses before the count. The hardware
            // needs nothing: an interrupt on this core sees this core's own program order.
            compiler_fence(Ordering::SeqCst);
        }
        Self { _not_send: PhantomData }
    }

    /// Preemption stays disabled, until somebody takes the guard back by [`Self::kept`].
    #[cfg(not(any(loom, shuttle)))]
    #[inline(always)]
    pub(super) fn keep(self) {
        core::mem::forget(self);
    }

    /// A guard that was kept.
    ///
    /// # Safety
    /// One was, on the stack that the caller runs on, and was not taken back since.
    #[cfg(not(any(loom, shuttle)))]
    #[inline(always)]
    pub(super) unsafe fn kept() -> Self {
        Self { _not_send: PhantomData }
    }
}

impl Default for PreemptGuard {
    fn default() -> Self {
        Self::new()
    }
}

impl Drop for PreemptGuard {
    #[inline(always)]
    fn drop(&mut self) {
        #[cfg(not(any(loom, shuttle)))]
        {
            compiler_fence(Ordering::SeqCst);
            let word = PreemptWord::current();
            word.store(word.load() - 1);
            // An interrupt before this store has left its request, which is read after it; one that comes later finds preemption
            // enabled, if this was the outermost section.
            compiler_fence(Ordering::SeqCst);
            if word.is_requested() {
                preempt_if_outermost(word);
            }
        }
    }
}

#[cfg(not(any(loom, shuttle)))]
#[cold]
#[inline(never)]
fn preempt_if_outermost(word: &PreemptWord) {
    if word.is_enabled() || (word.is_held_once() && word.due() & EARLY != 0) {
        crate::arch::switch::preempt_trap();
    }
}

/// Whether the caller runs with preemption disabled; for assertions.
pub fn preemption_is_disabled() -> bool {
    cfg!(any(loom, shuttle)) || !PreemptWord::current().is_enabled()
}
