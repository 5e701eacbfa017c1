//! What has a core's next turn, chosen before its loop looks at its queues: something urgent that was woken on the core between
//! two turns, or by an interrupt that has met a turn which is less urgent, where nothing else urgent waits. It would come next anyway, so it need not
//! go through a queue.
//!
//! The core puts it there in its loop, in an interrupt while its loop waits, or in one that has met a turn. The end of that one leaves the turn, or the
//! end of the section that it has met does, or puts the choice into its queue (`run/preempt.rs`): so while a turn goes on with preemption enabled there
//! is none. Where the turn ends first, or crashes, its loop has a choice. The loop takes it before it looks for anything to run. It goes into its queue,
//! before the other, where something else urgent comes meanwhile, and before whatever looks at the queues for long. So no thief need find it. Who asks whether anything is left to run finds it as it finds what is in a queue.

use core::ptr::{self, NonNull};

use crate::arch::atomic::{AtomicPtr, Ordering, const_fn};

/// At most one. Its core alone changes it.
pub struct Chosen<T>(AtomicPtr<T>);

impl<T> Chosen<T> {
    const_fn! {
        /// None.
        pub fn new() -> Self {
            Self(AtomicPtr::new(ptr::null_mut()))
        }
    }

    /// Whether there is one; for others than its core as good as a look into its queues.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        // Relaxed: its core sees its own stores. Another that asks whether anything is left has acquired the end of what led to the
        // wake-up (`time::pending`), or sees that the core has gone on (`Quiescence`).
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// Chooses it. There is none. On its core, in its loop between two turns, in an interrupt while that waits, or in one that has met a turn: none of
    /// these comes between another's look whether there is one, and its store.
    #[inline(always)]
    pub fn put(&self, process: NonNull<T>) {
        debug_assert!(!self.is_some(), "a core's loop has two choices");
        // Relaxed: the same core takes it.
        self.0.store(process.as_ptr(), Ordering::Relaxed);
    }

    /// Takes it. On its core, in its loop between two turns, in an interrupt while that waits, at the end of one that has met a turn, or in a turn's
    /// section.
    #[inline(always)]
    pub fn take(&self) -> Option<NonNull<T>> {
        // Relaxed, both: its core's own. No exchange, because an interrupt puts one only while the loop waits, which does not take any, or into a
        // turn, and only where there is none: so nothing comes between a load that has found one and the store.
        let process = NonNull::new(self.0.load(Ordering::Relaxed))?;
        self.0.store(ptr::null_mut(), Ordering::Relaxed);
        Some(process)
    }
}

impl<T> Default for Chosen<T> {
    fn default() -> Self {
        Self::new()
    }
}
