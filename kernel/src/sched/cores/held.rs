//! Until when a core begins no turn of a resident: something was put into a mailbox before its moment (`sched/spawn/early.rs`).
//!
//! The loop notes the moment when it carries out a delayed call early. A turn in which that could be seen begins after the moment: the
//! loop takes the note before the turn's first instruction, and waits. Of several moments the latest is kept, because one turn goes through
//! all that is there. A turn that could not see it leaves the note for the next.

use crate::arch::atomic::{AtomicU64, Ordering, const_fn};

/// A moment in clock ticks, or none: 0. Its core's loop alone uses it, so everything is Relaxed.
pub struct Held(AtomicU64);

impl Held {
    const_fn! {
        /// Turns begin whenever they like.
        pub fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// A call for `moment`, which is still ahead, is about to be carried out. `stays`: what it does is seen by nobody before a
    /// resident's next turn on this core. Then that turn is held, and the answer is yes; otherwise the caller waits for the moment first.
    #[inline(always)]
    pub fn may_go_first(&self, moment: u64, stays: bool) -> bool {
        if stays {
            self.0.store(self.0.load(Ordering::Relaxed).max(moment), Ordering::Relaxed);
        }
        stays
    }

    /// Whether a turn of a resident is to be held.
    #[inline(always)]
    pub fn is_some(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// A turn begins; `sees` says whether it is one that is to be held. Until when: 0 if it is not.
    #[inline(always)]
    pub fn take(&self, sees: bool) -> u64 {
        if !sees {
            return 0;
        }
        let moment = self.0.load(Ordering::Relaxed);
        self.0.store(0, Ordering::Relaxed);
        moment
    }
}

impl Default for Held {
    fn default() -> Self {
        Self::new()
    }
}
