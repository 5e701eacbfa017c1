//! That an interrupt has come, and who is to be woken for it: what the handler writes, and who waits reads.
//!
//! ```text
//!   the handler                         who waits
//!   ───────────                         ─────────
//!   say that it has come                leave the waker
//!   take the waker, and wake            has it come? then do not wait
//! ```
//!
//! So one of the two sees the other: the waker's cell (`atomic-waker`, and loom's in a model) has an exchange on either side. The handler takes no
//! lock and never waits: one that comes while a waker is being left leaves the waking to who leaves it.

#[cfg(not(loom))]
use atomic_waker::AtomicWaker;
#[cfg(loom)]
use loom::future::AtomicWaker;

use core::task::Waker;

use crate::arch::atomic::{AtomicBool, Ordering};

/// Of one interrupt.
pub struct Arrival {
    has_come: AtomicBool,
    waker: AtomicWaker,
}

impl Arrival {
    /// Nothing has come, and nobody waits.
    pub fn new() -> Self {
        Self { has_come: AtomicBool::new(false), waker: AtomicWaker::new() }
    }

    /// It has come. In the handler.
    #[inline(always)]
    pub fn note(&self) {
        // Release: pairs with the acquire in `take`, so that who waits sees what the handler wrote before.
        self.has_come.store(true, Ordering::Release);
        self.waker.wake();
    }

    /// Whether it has come since this was last asked, or [`forget`](Self::forget) called.
    pub fn take(&self) -> bool {
        // Acquire: pairs with the release in `note`.
        self.has_come.swap(false, Ordering::Acquire)
    }

    /// From now on `waker` is woken when it comes. Who calls it asks [`take`](Self::take) again afterwards.
    ///
    /// One caller at a time, and none that is ended in the middle of it: with preemption disabled.
    pub fn leave(&self, waker: &Waker) {
        #[cfg(not(loom))]
        self.waker.register(waker);
        #[cfg(loom)]
        self.waker.register_by_ref(waker);
    }

    /// Whatever has come is nobody's, and nobody is woken.
    pub fn forget(&self) {
        #[cfg(not(loom))]
        let waker = self.waker.take();
        #[cfg(loom)]
        let waker = self.waker.take_waker();
        drop(waker);
        self.take();
    }
}

impl Default for Arrival {
    fn default() -> Self {
        Self::new()
    }
}
