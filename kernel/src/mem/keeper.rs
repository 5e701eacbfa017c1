//! Who may use a core's cache: the core, or whoever is short of memory while the core sleeps.
//!
//! A lock that a core holds for as long as it is awake, so that its own way to its cache asks nobody. It lets go right
//! before it sleeps and takes the cache back before it does anything else. A caller that is short of memory tries once,
//! and waits for nobody.

use crate::arch::atomic::{AtomicU32, Ordering};
use crate::sync::{PreemptGuard, SpinWait};

/// Zero, like the lists that it guards, so that the image need not contain the caches.
const HELD: u32 = 0;
const FREE: u32 = 1;

/// The lock of one cache.
pub(super) struct Keeper(AtomicU32);

impl Keeper {
    /// Its core has it, even before that core has started.
    pub(super) const fn new() -> Self {
        Self(AtomicU32::new(HELD))
    }

    /// The core does without its cache from here on.
    ///
    /// # Safety
    /// The caller is the core and has it.
    pub(super) unsafe fn let_go(&self) {
        // Release: whoever takes it sees the lists as they are; pairs with the acquire in `try_take`.
        self.0.store(FREE, Ordering::Release);
    }

    /// The core has its cache again. Waits while another has it, which is for one class's lists at most.
    pub(super) fn take_back(&self, here: &PreemptGuard) {
        let mut wait = SpinWait::default();
        while !self.try_take(here) {
            wait.pause();
        }
    }

    /// Whether the caller has the cache now, which it gives back with [`Self::let_go`]. Preemption stays disabled
    /// meanwhile, because the core may be waiting for it.
    pub(super) fn try_take(&self, _here: &PreemptGuard) -> bool {
        // Acquire: pairs with the release in `let_go`, by the core or by another that had it. Relaxed on failure: nothing
        // was learned.
        self.0.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
    }
}
