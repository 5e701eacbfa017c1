//! A lock that its holder may enter again: who holds it is in its one word.
//!
//! Whoever enters names itself, by a number that no two have at the same time. Only it ever writes that number there, so whether
//! it holds the lock already it sees without ordering: it is its own store that it reads. What must not happen between that look
//! and the exchange, or while it is held, is that something else goes by the same number: for a core that is whatever could run on it
//! meanwhile. Who uses the lock sees to that (`critical_section.rs`).

use core::num::NonZeroUsize;

use crate::arch::atomic::{AtomicUsize, Ordering, const_fn};

const FREE: usize = 0;

/// How it was entered, for leaving it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Entered {
    /// It was free.
    First,
    /// The caller was in it.
    Again,
}

/// The lock. It guards no data of its own.
pub struct SectionLock {
    holder: AtomicUsize,
}

impl SectionLock {
    const_fn! {
        /// A free one.
        pub fn new() -> Self {
            Self { holder: AtomicUsize::new(FREE) }
        }
    }

    /// Whether `own`, which is the caller, is in it.
    #[inline(always)]
    pub fn is_held_by(&self, own: NonZeroUsize) -> bool {
        // Relaxed: what makes it so, or not so, the caller has done itself.
        self.holder.load(Ordering::Relaxed) == own.get()
    }

    /// Enters it, if it is free or the caller, `own`, is in it.
    #[inline(always)]
    pub fn enter(&self, own: NonZeroUsize) -> Option<Entered> {
        if self.is_held_by(own) {
            return Some(Entered::Again);
        }
        // Acquire: pairs with the release in `leave`, so the holder sees what the last one wrote. Relaxed on failure: nothing was
        // learned.
        let taken = self.holder.compare_exchange(FREE, own.get(), Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok().then_some(Entered::First)
    }

    /// Leaves it as far as it was entered.
    #[inline(always)]
    pub fn leave(&self, entered: Entered) {
        if entered == Entered::First {
            // Release: pairs with the acquire in `enter`.
            self.holder.store(FREE, Ordering::Release);
        }
    }
}

#[cfg(not(loom))]
impl Default for SectionLock {
    fn default() -> Self {
        Self::new()
    }
}
