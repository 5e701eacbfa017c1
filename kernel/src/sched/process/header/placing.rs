//! Where a process may run, where it did, and since when it waits there. The queues and the rules of migration ask for this.

use super::{Header, is_ordinary};
use crate::arch::atomic::Ordering;
use crate::arch::{CoreId, CoreSet};
use crate::sched::process::priority::Priority;

impl Header {
    /// Its priority, which never changes.
    pub fn priority(&self) -> Priority {
        self.priority
    }

    /// The cores it may run on.
    pub fn affinity(&self) -> CoreSet {
        CoreSet::of_mask(self.affinity_mask())
    }

    pub(crate) fn affinity_mask(&self) -> u64 {
        // Relaxed: the mask stands alone.
        self.affinity.load(Ordering::Relaxed)
    }

    pub(crate) fn set_affinity(&self, mask: u64) {
        // Relaxed: as above; a process that is queued elsewhere moves when it is next enqueued.
        self.affinity.store(mask, Ordering::Relaxed);
        let is_ordinary = is_ordinary(self.priority, mask) && !self.is_limited();
        self.is_ordinary.store(is_ordinary, Ordering::Relaxed);
    }

    /// Whether it is `Normal`, may run on every core, and has neither an account nor a share of CPU time.
    #[inline(always)]
    pub(crate) fn is_ordinary(&self) -> bool {
        // Relaxed: as for the mask.
        self.is_ordinary.load(Ordering::Relaxed)
    }

    /// Whether it may run on one core only.
    pub fn is_pinned(&self) -> bool {
        self.affinity_mask().is_power_of_two()
    }

    /// The core it ran on last, or was placed on.
    pub fn home(&self) -> CoreId {
        // Relaxed: a hint for placement.
        CoreId::new(self.home.load(Ordering::Relaxed) as usize).unwrap_or(CoreId::BOOT)
    }

    pub(crate) fn set_home(&self, core: CoreId) {
        // Relaxed: as above.
        self.home.store(core.index() as u8, Ordering::Relaxed);
    }

    /// How often it has changed cores.
    pub fn migrations(&self) -> u32 {
        // Relaxed: a statistic.
        self.migrations.load(Ordering::Relaxed)
    }

    pub(crate) fn moved_at(&self) -> u64 {
        // Relaxed: a statistic that policy reads.
        self.moved_at.load(Ordering::Relaxed)
    }

    pub(crate) fn record_move(&self, now: u64) {
        // Relaxed load and store: only the holder of the process, while it is in no queue, writes these.
        self.migrations.store(self.migrations.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
        self.moved_at.store(now, Ordering::Relaxed);
    }

    pub(crate) fn enqueued_at(&self) -> u64 {
        // Relaxed: a statistic that policy reads.
        self.enqueued_at.load(Ordering::Relaxed)
    }

    /// When it was enqueued; from now on it is in no queue.
    #[inline(always)]
    pub(crate) fn take_enqueued_at(&self) -> u64 {
        // Relaxed, both: whoever takes a process from a queue alone writes this.
        let at = self.enqueued_at.load(Ordering::Relaxed);
        self.enqueued_at.store(0, Ordering::Relaxed);
        at
    }

    pub(crate) fn set_enqueued_at(&self, now: u64) {
        // Relaxed: as above.
        self.enqueued_at.store(now, Ordering::Relaxed);
    }
}
