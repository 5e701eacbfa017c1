//! What a core's loop has chosen for the next turn before it looked into its queues: something urgent that came between two turns,
//! while nothing urgent waited. It would be the next anyway, so it need not go through a queue.
//!
//! The core puts it there in its loop, or in an interrupt while its loop waits. The loop takes it before it looks for anything to run. It
//! goes into its queue, before the other, where something else urgent comes meanwhile, and before whatever looks at the queues for long.
//! So no thief need find it, and during a turn there is none. Who asks whether anything is left to run finds it as it finds what is in a queue.

use core::ptr::{self, NonNull};

use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::sched::process::{Header, Runnable};

/// At most one process. Its core alone changes it.
pub(crate) struct Chosen(AtomicPtr<Header>);

impl Chosen {
    pub(crate) const fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Whether there is one; for others than its core as good as a look into its queues.
    #[inline(always)]
    pub(crate) fn is_some(&self) -> bool {
        // Relaxed: its core sees its own stores. Another that asks whether anything is left has acquired the end of what led to the
        // wake-up (`time::pending`), or sees that the core has gone on (`Quiescence`).
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// Chooses it. There is none.
    ///
    /// # Safety
    /// On its core, in its loop between two turns, or in an interrupt while that waits.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, process: Runnable) {
        debug_assert!(!self.is_some(), "a core's loop has two choices");
        // Relaxed: the same core takes it.
        self.0.store(process.into_pointer().as_ptr(), Ordering::Relaxed);
    }

    /// Takes it.
    ///
    /// # Safety
    /// On its core, in its loop between two turns, or in an interrupt while that waits.
    #[inline(always)]
    pub(crate) unsafe fn take(&self) -> Option<Runnable> {
        // Relaxed, both: its core's own. No exchange, because interrupts come here only while the loop waits, and does not.
        let process = NonNull::new(self.0.load(Ordering::Relaxed))?;
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
        // SAFETY: it came from a `Runnable`, and is taken once.
        Some(unsafe { Runnable::new(process) })
    }
}
