//! One core's run queues: four priorities and a run-next slot.
//!
//! What waits with one priority is in [`priority_queue`], the choice of what runs next in [`choice`].
//!
//! The *run-next slot* is for the `Normal` process that was woken last, by this core, or that has made way for something urgent. It may
//! jump the queue a bounded number of times in a row, because what it was woken for is still in the cache.

mod choice;
mod priority_queue;
mod streaks;

use core::ptr::NonNull;

use self::priority_queue::PriorityQueue;
use self::streaks::Streaks;
use super::deadlines::Deadlines;
use super::ready_mask::ReadyMask;
use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::in_place::write_fields;
use crate::queue::Stolen;
use crate::sched::process::{Header, Priority, Runnable};

/// The bits of [`RunQueue::ready`] for the queues.
const QUEUES: u32 = (1 << Priority::COUNT) - 1;

/// The bit of [`RunQueue::ready`] for everything but the queues, see `run/attention.rs`.
const ATTENTION: u32 = 1 << 8;

/// The bit that says that something may be in an overflow list.
const OVERFLOWED: u32 = 1 << 9;

/// The bit that says that something may be among those with a deadline. The owner alone puts anything there.
const BY_DEADLINE: u32 = 1 << 10;

/// The bit that says that something may be in the run-next slot, or pinned to this core and in its list, or that a streak is counted. The owner alone
/// puts anything there. It stays set until a turn that only yields finds nothing of it.
const ASIDE: u32 = 1 << 11;

/// The bit for what other cores and interrupts have put into the inboxes of a priority.
const fn arrived(priority: Priority) -> u32 {
    priority.bit() << 4
}

/// One core's queues.
// In this order, so that the turns of `Normal` processes find what they need near the beginning.
#[repr(C)]
pub(crate) struct RunQueue {
    /// A bit for each priority that may have something.
    ready: ReadyMask,
    next: AtomicPtr<Header>,
    // The rest is the owner's alone.
    streaks: Streaks,
    /// In an order of their own, see `of`.
    queues: [PriorityQueue; Priority::COUNT],
    /// Those of `High` that have a deadline; before the others of `High`.
    deadlines: Deadlines,
}

impl RunQueue {
    /// Makes empty queues at a place.
    ///
    /// # Safety
    /// The place is fit to be written.
    pub(crate) unsafe fn init(place: *mut Self) {
        let queues = |queues: *mut [PriorityQueue; Priority::COUNT]| {
            for index in 0..Priority::COUNT {
                // SAFETY: the caller promised a place fit to be written; this is within the array.
                unsafe { PriorityQueue::init(queues.cast::<PriorityQueue>().add(index)) };
            }
        };
        // SAFETY: the caller promised a place fit to be written.
        unsafe {
            write_fields!(place => Self {
                ready: ReadyMask::new(),
                next: AtomicPtr::new(core::ptr::null_mut()),
                streaks: Streaks::new(),
                deadlines: Deadlines::new(),
            } in place {
                queues: queues,
            });
        }
    }

    #[inline(always)]
    pub(crate) fn of(&self, priority: Priority) -> &PriorityQueue {
        // `Normal` is the first.
        &self.queues[priority.index() ^ Priority::Normal.index()]
    }

    /// How many wait that a thief could take without touching the run-next slot.
    // Many ask, none of them often, and inline it is long.
    #[inline(never)]
    pub(crate) fn stealable(&self) -> usize {
        self.queues.iter().map(PriorityQueue::stealable).sum::<usize>() + self.deadlines.stealable()
    }

    /// The same of one priority.
    pub(crate) fn stealable_of(&self, priority: Priority) -> usize {
        let by_deadline = if priority == Priority::High { self.deadlines.stealable() } else { 0 };
        self.of(priority).stealable() + by_deadline
    }

    /// The same without a look where nothing was flagged. To others than the owner a bit may seem clear for a moment
    /// ([`ReadyMask::unflag`]).
    pub(crate) fn stealable_where_flagged(&self) -> usize {
        let flagged = self.ready.bits();
        let waiting = Priority::ALL.into_iter().filter(|priority| flagged & priority.bit() != 0);
        let by_deadline = if flagged & BY_DEADLINE == 0 { 0 } else { self.deadlines.stealable() };
        waiting.map(|priority| self.of(priority).stealable()).sum::<usize>() + by_deadline
    }

    /// Overwrites what is stale in the queues, so that a collection does not take it for pointers.
    ///
    /// # Safety
    /// No core is in an operation of these queues, and what was done to them happened before this.
    #[cfg(target_os = "none")]
    pub(crate) unsafe fn clear_taken(&self) {
        // SAFETY: by contract.
        self.queues.iter().for_each(|queue| unsafe { queue.deque.clear_taken() });
    }

    /// How many wait, roughly.
    pub(crate) fn waiting(&self) -> usize {
        let bound: usize = self.queues.iter().map(|queue| queue.bound.len() + 1).sum();
        self.stealable() + self.deadlines.bound() + bound + usize::from(self.run_next_is_taken())
    }

    /// How many wait, by priority, as far as is published.
    pub(crate) fn waiting_by_priority(&self) -> [usize; Priority::COUNT] {
        let mut waiting = Priority::ALL.map(|priority| {
            let queue = self.of(priority);
            // A pinned process that another core has just sent is not counted: its inbox has no length.
            queue.stealable() + queue.bound.len()
        });
        waiting[Priority::High.index()] += self.deadlines.stealable() + self.deadlines.bound();
        waiting[Priority::Normal.index()] += usize::from(self.run_next_is_taken());
        waiting
    }

    /// The most urgent priority of which something may wait here.
    pub(crate) fn most_urgent(&self) -> Option<Priority> {
        let mask = self.ready.bits() | if self.run_next_is_taken() { Priority::Normal.bit() } else { 0 };
        Priority::ALL.into_iter().find(|priority| mask & priority.bit() != 0)
    }

    /// Whether something waits here that was flagged: what a sender is just putting there is not, and its interrupt, or the next
    /// look, comes later.
    #[inline(always)]
    pub(crate) fn has_any(&self) -> bool {
        let mask = self.ready.bits();
        let waits = |priority: Priority| mask & priority.bit() != 0 && !self.has_none(priority);
        self.run_next_is_taken() || Priority::ALL.into_iter().any(waits)
    }

    /// Whether something here was flagged as put there. Exact for what was flagged before a full barrier that the caller has passed
    /// since, or the flagger before it looked at what the caller announced; what is gone again may still be flagged.
    #[inline(always)]
    pub(crate) fn is_flagged(&self) -> bool {
        self.ready.bits() & QUEUES != 0 || self.run_next_is_taken()
    }

    /// Whether something urgent may wait here: it is flagged.
    #[inline(always)]
    pub(crate) fn has_urgent(&self) -> bool {
        self.ready.bits() & (Priority::Max.bit() | Priority::High.bit()) != 0
    }

    /// The same, or everything is to be looked at.
    #[inline(always)]
    pub(crate) fn wants_urgent_look(&self) -> bool {
        self.ready.bits() & (Priority::Max.bit() | Priority::High.bit() | ATTENTION) != 0
    }

    /// Whether something urgent waits here, and is more urgent than this.
    #[inline(always)]
    pub(crate) fn has_more_urgent(&self, than: Priority) -> bool {
        let mask = self.ready.bits();
        [Priority::Max, Priority::High]
            .into_iter()
            .any(|priority| priority < than && mask & priority.bit() != 0 && !self.has_none(priority))
    }

    /// Whether something urgent waits here. Out of line, for who asks seldom.
    #[inline(never)]
    pub(crate) fn has_urgent_waiting(&self) -> bool {
        self.has_more_urgent(Priority::Normal)
    }

    /// When the first is due of those with a deadline that this core has put into its queues.
    #[inline(always)]
    pub(crate) fn earliest(&self) -> u64 {
        self.deadlines.earliest()
    }

    /// Whether something `High` has arrived that is not in its queue yet: nobody has looked at its deadline.
    #[inline(always)]
    pub(crate) fn has_unsorted(&self) -> bool {
        self.ready.bits() & arrived(Priority::High) != 0
    }

    /// Whether nothing waits with this priority, but in the run-next slot. What thieves have taken may still seem to wait.
    #[inline(always)]
    fn has_none(&self, priority: Priority) -> bool {
        self.of(priority).is_empty() && (priority != Priority::High || self.ready.bits() & BY_DEADLINE == 0)
    }

    /// Whether a process waits in the run-next slot.
    pub(crate) fn run_next_is_taken(&self) -> bool {
        // Relaxed: an estimate.
        !self.next.load(Ordering::Relaxed).is_null()
    }

    /// Whether nothing waits here, as far as the owner or a core that has just passed a full barrier can
    /// see.
    pub(crate) fn is_empty(&self) -> bool {
        !self.run_next_is_taken()
            && self.queues.iter().all(PriorityQueue::is_empty)
            && self.deadlines.is_empty()
    }

    /// Puts a process at the back of its queue. Returns whether it may run elsewhere, too.
    ///
    /// # Safety
    /// The caller is the owner's core, with preemption disabled and not in an interrupt.
    #[inline(always)]
    pub(super) unsafe fn push_own(&self, process: Runnable) -> bool {
        let priority = process.priority();
        let is_pinned = process.is_pinned();
        if process.has_deadline() {
            self.push_by_deadline(process);
        // SAFETY: the caller is the owner's core.
        } else if is_pinned {
            // SAFETY: as above.
            unsafe { self.of(priority).push_bound(process) };
            self.ready.flag_own(priority.bit() | ASIDE);
            return false;
        // SAFETY: as above.
        } else if unsafe { self.of(priority).push_own(process) } {
            self.ready.flag_own(OVERFLOWED);
        }
        self.ready.flag_own(priority.bit());
        !is_pinned
    }

    #[cold]
    #[inline(never)]
    fn push_by_deadline(&self, process: Runnable) {
        self.deadlines.push(process);
        self.ready.flag_own(BY_DEADLINE);
    }

    /// Puts a process into the run-next slot, and the one that was there at the back of its queue. Returns
    /// whether there was one.
    ///
    /// # Safety
    /// As for [`Self::push_own`]; the process is `Normal` and not pinned.
    pub(super) unsafe fn put_next(&self, process: Runnable) -> bool {
        self.ready.flag_own(ASIDE);
        // AcqRel: the release hands the process to whoever takes it; the acquire receives the old one.
        let old = self.next.swap(process.into_pointer().as_ptr(), Ordering::AcqRel);
        let Some(old) = NonNull::new(old) else { return false };
        // SAFETY: by contract; the swap made `old` ours.
        unsafe { self.push_own(Runnable::new(old)) };
        true
    }

    /// Delivers a process from another core or an interrupt.
    pub(crate) fn push_remote(&self, process: Runnable) {
        let priority = process.priority();
        let queue = self.of(priority);
        if process.is_pinned() {
            // SAFETY: what is in hand is in no list; processes may be handed to any core.
            unsafe { queue.bound_inbox.push(process.into_pointer()) };
            return self.flag(priority);
        }
        // Relaxed: an estimate, made before the process is visible so that it never goes below zero.
        queue.inbox_length.fetch_add(1, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { queue.inbox.push(process.into_pointer()) };
        self.flag(priority);
    }

    /// Takes up to half of what waits with one priority, and at most `most`, for another core: by deadline what has one, then
    /// oldest first.
    pub(crate) fn steal(&self, priority: Priority, most: usize, take: &mut dyn FnMut(Runnable)) -> Stolen {
        let mut by_deadline = 0;
        if priority == Priority::High {
            // One at a time, because each takes the lock for a while.
            let most = self.deadlines.stealable().div_ceil(2).min(most);
            while by_deadline < most
                && let Some(process) = self.deadlines.steal()
            {
                take(process);
                by_deadline += 1;
            }
        }
        let mut count = self.of(priority).steal(most - by_deadline, take);
        count.taken += by_deadline;
        count
    }

    fn flag(&self, priority: Priority) {
        self.ready.flag(priority.bit() | arrived(priority));
    }

    fn unflag(&self, priority: Priority) {
        // Both bits, also if something is there after all, because it may have arrived.
        self.ready.unflag(priority.bit() | arrived(priority), || self.has_none(priority));
    }

    /// The core's loop is to look at everything. The caller has made visible what is to be seen.
    pub(crate) fn ask_attention(&self) {
        self.ready.flag(ATTENTION);
    }

    /// Whether it is.
    #[inline(always)]
    pub(crate) fn wants_attention(&self) -> bool {
        self.ready.bits() & ATTENTION != 0
    }

    /// The loop has looked and found nothing that wants another look; it looks once more.
    pub(crate) fn note_attended(&self, nothing_left: impl FnOnce() -> bool) {
        self.ready.unflag(ATTENTION, nothing_left);
    }
}
