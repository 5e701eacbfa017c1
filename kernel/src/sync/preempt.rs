//! Disabling preemption: a count in the block of the running stack.
//!
//! The count travels with the code: it lies in the stack block (see `docs/architecture.md`, "Contexts
//! and preemption"), not in the core's block, because code can be moved to another core between reading
//! and writing a per-core count. Only code on that stack, and interrupts taken on it, touch the word,
//! so plain loads and stores suffice.
//!
//! When the timer finds a process past its slice inside a section that must not be preempted, it sets
//! [`PENDING`]; leaving the outermost section then enters the preemption handler.

use core::marker::PhantomData;

use crate::arch::atomic::{AtomicU32, Ordering, const_fn};
use crate::arch::percpu;

/// Set in the word while a preemption is due.
const PENDING: u32 = 1 << 31;
/// Set besides if it was an interrupt that found it due, and has noted when.
const NOTED: u32 = 1 << 30;

/// The first word of every stack block: how many sections disable preemption, and whether one is due.
#[repr(transparent)]
pub struct PreemptWord(AtomicU32);

impl PreemptWord {
    const_fn! {
        /// A word that disables preemption `count` times.
        pub fn new(count: u32) -> Self {
            Self(AtomicU32::new(count))
        }
    }

    /// Whether a preemption may happen now.
    pub(crate) fn is_enabled(&self) -> bool {
        self.load() & !(PENDING | NOTED) == 0
    }

    /// Disables preemption, for an interrupt handler or another section that must not end with a trap.
    pub(crate) fn hold(&self) {
        self.store(self.load() + 1);
    }

    /// Ends what [`hold`](Self::hold) began. A request made meanwhile is left to the caller that began the section.
    pub(crate) fn release(&self) {
        self.store(self.load() - 1);
    }

    /// Remembers that a preemption is due, for when the section ends.
    pub(crate) fn request(&self) {
        self.store(self.load() | PENDING);
    }

    /// As [`request`](Self::request), in an interrupt. Whether it is the first one in this section, whose time is to be noted.
    pub(crate) fn request_in_interrupt(&self) -> bool {
        let word = self.load();
        self.store(word | PENDING | NOTED);
        word & NOTED == 0
    }

    /// Whether an interrupt has requested a preemption, which has not happened yet.
    pub(crate) fn has_noted(&self) -> bool {
        self.load() & NOTED != 0
    }

    /// Forgets a request: it finds nothing to do any more.
    pub(crate) fn clear_request(&self) {
        self.store(self.load() & !(PENDING | NOTED));
    }

    /// Sets the word for a stack that begins a new life with preemption disabled `count` times.
    pub(crate) fn reset(&self, count: u32) {
        self.store(count);
    }

    #[inline(always)]
    fn load(&self) -> u32 {
        // Relaxed: only this stack's code and interrupts on it ever touch the word.
        self.0.load(Ordering::Relaxed)
    }

    #[inline(always)]
    fn store(&self, value: u32) {
        // Relaxed: as for `load`. The compiler fences in the guard keep the section's accesses inside.
        self.0.store(value, Ordering::Relaxed);
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
            core::sync::atomic::compiler_fence(Ordering::SeqCst);
        }
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
            core::sync::atomic::compiler_fence(Ordering::SeqCst);
            let word = PreemptWord::current();
            let value = word.load() - 1;
            word.store(value);
            // One bit to test on the common path; only if it is set is it checked whether this was the outermost
            // section.
            if value & PENDING != 0 {
                preempt_if_outermost(value);
            }
        }
    }
}

#[cfg(not(any(loom, shuttle)))]
#[cold]
#[inline(never)]
fn preempt_if_outermost(value: u32) {
    if value & !NOTED == PENDING {
        crate::arch::switch::preempt_trap();
    }
}

/// Whether the caller runs with preemption disabled; for assertions.
pub fn preemption_is_disabled() -> bool {
    cfg!(any(loom, shuttle)) || !PreemptWord::current().is_enabled()
}
