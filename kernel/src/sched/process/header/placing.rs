//! Where a process may run, where it did, and since when it waits there. The queues and the rules of migration ask for this.

use super::Header;
use crate::arch::atomic::Ordering;
use crate::arch::{CoreId, CoreSet};
use crate::roll::Place;
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

    /// For one that has not been started.
    pub(crate) fn set_affinity(&self, mask: u64) {
        // Relaxed: as above.
        self.affinity.store(mask, Ordering::Relaxed);
    }

    /// It was entered on that core's roll, or struck off. By whoever has the process in hand.
    pub(crate) fn set_listed(&self, place: Option<(CoreId, &'static Place)>) {
        // Relaxed, all: whoever has the process in hand next has synchronised with this one.
        let Some((core, place)) = place else {
            return self.place.store(core::ptr::null_mut(), Ordering::Relaxed);
        };
        self.roll.store(core.index() as u8, Ordering::Relaxed);
        self.place.store(core::ptr::from_ref(place).cast_mut(), Ordering::Relaxed);
        self.is_ordinary.store(self.is_ordinary_if_listed(), Ordering::Relaxed);
    }

    /// Whether it is ordinary once it is on a roll.
    pub(crate) fn is_ordinary_if_listed(&self) -> bool {
        self.priority == Priority::Normal && self.affinity_mask() == u64::MAX && !self.is_limited()
    }

    /// The core on whose roll it is, and where it is entered, if it is.
    pub(crate) fn listed(&self) -> Option<(CoreId, &'static Place)> {
        // SAFETY: null, or a place, which stays for ever. Relaxed: as above.
        let place = unsafe { self.place.load(Ordering::Relaxed).as_ref() }?;
        Some((CoreId::new(self.roll.load(Ordering::Relaxed).into())?, place))
    }

    /// Whether it is on a roll.
    #[inline(always)]
    pub(crate) fn is_listed(&self) -> bool {
        // Relaxed: as above.
        !self.place.load(Ordering::Relaxed).is_null()
    }

    /// Whether it is `Normal`, may run on every core, has neither an account nor a share of CPU time, and is on a roll.
    #[inline(always)]
    pub(crate) fn is_ordinary(&self) -> bool {
        // Relaxed: as for the mask.
        self.is_ordinary.load(Ordering::Relaxed)
    }

    /// Whether it has come back from being put aside, and had no turn since.
    pub(crate) fn has_come_back(&self) -> bool {
        // Relaxed: by whoever has it in hand; a queue hands it on.
        self.has_come_back.load(Ordering::Relaxed)
    }

    /// Notes whether it has.
    pub(crate) fn set_come_back(&self, has_come_back: bool) {
        // Relaxed: as above.
        self.has_come_back.store(has_come_back, Ordering::Relaxed);
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

    /// The same where its turn follows another at once: there it stays, if nobody looks at it, because that is sooner.
    #[inline(always)]
    pub(crate) fn enqueued_until_now(&self) -> u64 {
        if Self::KEEPS_TIME { self.enqueued_at() } else { self.take_enqueued_at() }
    }

    /// Whether one that has a turn may still have the time of when it was enqueued. Not where that is checked, nor on threads, where nobody could
    /// tell otherwise that it has a turn.
    pub(super) const KEEPS_TIME: bool = cfg!(target_os = "none") && !cfg!(debug_assertions);

    pub(crate) fn set_enqueued_at(&self, now: u64) {
        // Relaxed: as above.
        self.enqueued_at.store(now, Ordering::Relaxed);
    }
}
