//! What the kernel keeps of one line, from its first claim on, for ever: what its handler needs, which is read there without a lock; and
//! whose it is, under a lock that no handler takes.

use core::ptr;

use super::arrival::Arrival;
use super::{Line, Trigger};
use crate::arch::atomic::{AtomicPtr, AtomicU64, Ordering};
use crate::arch::{CoreId, clock, gic};
use crate::queue::Linked;
use crate::sched::{ExternalSource, Raisable};
use crate::sync::{Identity, SpinLock};

/// One line.
pub(super) struct Slot {
    pub number: u32,
    pub arrival: Arrival,
    /// What is raised for it, if an actor is told.
    raised: AtomicPtr<Raisable>,
    /// How often it has interrupted since it was claimed.
    taken: AtomicU64,
    /// When it last did, in clock ticks.
    at: AtomicU64,
    /// The longest that it took until it was let through again, in clock ticks.
    longest: AtomicU64,
    pub claimed: SpinLock<Claimed>,
    link: AtomicPtr<Self>,
}

/// Whose a line is.
pub(super) struct Claimed {
    /// Which claim of the line this is, or was. A handle of an earlier one has no say.
    pub claim: u64,
    /// Nobody's, if there is none.
    pub holder: Option<Holder>,
    pub trigger: Trigger,
    pub core: CoreId,
}

/// Who has a line.
pub(super) struct Holder {
    /// Who ends with it: the one that claimed it, or has waited for it last. `None` if that was no process and no actor.
    pub owner: Option<Identity>,
    /// Interrupts may bring work.
    _source: ExternalSource,
}

impl Holder {
    pub fn new(owner: Option<Identity>) -> Self {
        Self { owner, _source: ExternalSource::new() }
    }
}

// SAFETY: nothing else names the link.
unsafe impl Linked for Slot {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

impl Slot {
    pub fn new(line: Line) -> Self {
        Self {
            number: line.number,
            arrival: Arrival::new(),
            raised: AtomicPtr::new(ptr::null_mut()),
            taken: AtomicU64::new(0),
            at: AtomicU64::new(0),
            longest: AtomicU64::new(0),
            claimed: SpinLock::new(Claimed {
                claim: 0,
                holder: None,
                trigger: line.trigger,
                core: CoreId::BOOT,
            }),
            link: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// It has interrupted this core. In the handler: it masks the line, so that the device need not be quiet yet, and tells.
    #[cfg(target_os = "none")]
    #[inline(always)]
    pub fn on_interrupt(&self) {
        gic::mask(self.number);
        // Relaxed: statistics. Of the line one core at a time has the interrupt, as a rule; if two meet, one is not counted.
        self.at.store(clock::now(), Ordering::Relaxed);
        self.taken.store(self.taken.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.arrival.note();
        // Acquire: pairs with the release in `raise`.
        if let Some(raised) = ptr::NonNull::new(self.raised.load(Ordering::Acquire)) {
            // SAFETY: only whole ones that stay are stored there.
            let raised: &'static Raisable = unsafe { raised.as_ref() };
            raised.raise();
        }
    }

    /// From now on that is raised as well, or nothing.
    pub fn raise(&self, raised: Option<&'static Raisable>) {
        let raised = raised.map_or(ptr::null_mut(), |raised| ptr::from_ref(raised).cast_mut());
        // Release: pairs with the acquire in `on_interrupt`.
        self.raised.store(raised, Ordering::Release);
    }

    /// Lets the line through. Whoever it is for has dealt with what came before.
    pub fn let_through(&self) {
        // Relaxed: statistics. Zero: it has not interrupted since.
        let at = self.at.swap(0, Ordering::Relaxed);
        if at != 0 {
            self.longest.fetch_max(clock::now().saturating_sub(at), Ordering::Relaxed);
        }
        gic::unmask(self.number);
    }

    /// It belongs to nobody any more, and is masked. The caller holds its lock.
    pub fn release(&self, claimed: &mut Claimed) {
        gic::mask(self.number);
        claimed.holder = None;
        self.raise(None);
    }

    /// Nothing has come, and nothing was counted.
    pub fn begin(&self) {
        self.arrival.forget();
        for counted in [&self.taken, &self.at, &self.longest] {
            // Relaxed: statistics.
            counted.store(0, Ordering::Relaxed);
        }
    }

    /// How often it has interrupted, and the longest that it took until it was let through again, in clock ticks.
    pub fn counted(&self) -> (u64, u64) {
        // Relaxed: statistics.
        (self.taken.load(Ordering::Relaxed), self.longest.load(Ordering::Relaxed))
    }
}
