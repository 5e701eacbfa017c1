//! Whether somebody has a thing in hand, and what was done with it is not handed over yet.
//!
//! Several may try to take the thing, all under one lock; who has it puts it down *without* the lock. So the
//! lock alone does not hand over what was done with it: the flag does. A mailbox's batch is such a thing: a
//! worker gulps under the mailbox's lock and delivers outside it.

use crate::arch::atomic::{AtomicBool, Ordering};
use crate::mutant;

/// The flag.
#[derive(Debug)]
pub struct InHand(AtomicBool);

impl InHand {
    /// Nobody has it.
    #[cfg(not(loom))]
    pub const fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Nobody has it.
    #[cfg(loom)]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Whether the caller, who holds the lock, may take it. What was done before it was put down is then seen.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        // Acquire: pairs with the release in `put_down`.
        let order = mutant::choose("gulp-flag-relaxed", Ordering::Acquire, Ordering::Relaxed);
        !self.0.load(order) || mutant::is("gulp-unasked")
    }

    /// Takes it. The caller holds the lock, and has found it free under it.
    #[inline(always)]
    pub fn take(&self) {
        // Relaxed: read under the lock by others who want it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Puts it down; the lock is not needed.
    #[inline(always)]
    pub fn put_down(&self) {
        // Release: hands over what was done; pairs with the acquire in `is_free`.
        let order = mutant::choose("done-relaxed", Ordering::Release, Ordering::Relaxed);
        self.0.store(false, order);
    }

    /// Whether somebody has it; may be old.
    #[inline(always)]
    pub fn hint(&self) -> bool {
        // Relaxed: a hint.
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for InHand {
    fn default() -> Self {
        Self::new()
    }
}
