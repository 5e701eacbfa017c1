//! What waits at one core with one priority.
//!
//! It has several parts, because different cores put processes there:
//!
//! - the *deque*: what the owner enqueued; thieves take from its top;
//! - the *overflow*: what the owner enqueued while the deque was full, so nothing is lost;
//! - the *inbox*: what other cores and interrupts enqueued; thieves may empty it too, so that what was
//!   delivered to a core in a long slice does not wait for it;
//! - the *bound* list: processes pinned to this core, with an inbox of its own. No thief looks through it: a thief must
//!   not have a pinned process in hand even for the moment that it takes to give it back.
//!
//! The owner takes the oldest first: newest first would let a process that yields starve its neighbours. Which priority has
//! its turn is decided in [`choice`](super::choice).

use core::cell::Cell;
use core::ptr::NonNull;

use crate::arch::atomic::{AtomicU32, Ordering};
use crate::in_place::write_fields;
use crate::queue::{Chain, Deque, Inbox, Overflow, OwnList, Stolen};
use crate::sched::process::{Header, Runnable};

/// Slots of one deque; more than this goes to the overflow list.
pub(crate) const DEQUE_SLOTS: usize = 1024;

/// How many processes at most are moved from the overflow to the deque at once: about 500 instructions with preemption
/// disabled, half of them with the overflow's lock held. A turn among 3000 processes costs the same with 8, 16 and 32; thieves take half
/// of what is in the deque.
const REFILL: usize = 16;

const _: () = assert!(REFILL <= DEQUE_SLOTS);

// In this order, so that all but the slots is near the beginning.
#[repr(C)]
pub(crate) struct PriorityQueue {
    pub(super) overflow: Overflow<Header>,
    pub(super) inbox: Inbox<Header>,
    /// How many are in the inbox, roughly: counted before they are visible.
    pub(super) inbox_length: AtomicU32,
    /// Whether the last one that was taken by turns was to be one of those that are pinned; the owner's. Of each priority by itself: where two of
    /// them took turns, each would otherwise meet the same half again and again.
    pub(super) bound_first: Cell<bool>,
    pub(super) bound: OwnList<Header>,
    /// What other cores and interrupts enqueued that is pinned to this core.
    pub(super) bound_inbox: Inbox<Header>,
    pub(super) deque: Deque<Header, DEQUE_SLOTS>,
}

impl PriorityQueue {
    /// # Safety
    /// The place is fit to be written.
    pub(super) unsafe fn init(place: *mut Self) {
        // SAFETY: the caller promised a place fit to be written.
        unsafe {
            write_fields!(place => Self {
                overflow: Overflow::new(),
                inbox: Inbox::new(),
                inbox_length: AtomicU32::new(0),
                bound_first: Cell::new(false),
                bound: OwnList::new(),
                bound_inbox: Inbox::new(),
            } in place {
                deque: Deque::init,
            });
        }
    }

    /// How many wait here that a thief could take. Any core may ask; the answer may be stale.
    pub(crate) fn stealable(&self) -> usize {
        // Relaxed: an estimate.
        self.deque.len() + self.overflow.len() + self.inbox_length.load(Ordering::Relaxed) as usize
    }

    /// Whether nothing waits here, as far as the owner or a core that has just passed a full barrier can see.
    pub(super) fn is_empty(&self) -> bool {
        self.stealable() == 0 && self.inbox.is_empty() && self.bound.len() == 0 && self.bound_inbox.is_empty()
    }

    /// Puts a process that is pinned at the back.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(super) unsafe fn push_bound(&self, process: Runnable) {
        // SAFETY: the caller is the owner; what is in hand is in no list.
        unsafe { self.bound.push(process.into_pointer()) };
    }

    /// Puts a process that is not pinned at the back. Returns whether it went to the overflow list.
    ///
    /// # Safety
    /// The caller is the owner's core, with preemption disabled and not in an interrupt.
    #[inline(always)]
    pub(super) unsafe fn push_own(&self, process: Runnable) -> bool {
        let process = process.into_pointer();
        // What overflowed earlier is older than this one: stay behind it.
        // SAFETY: the caller is the owner.
        if !self.overflow.is_empty() || unsafe { self.deque.push_bottom(process) }.is_err() {
            // SAFETY: as above.
            unsafe { self.overflow.push(process) };
            return true;
        }
        false
    }

    /// Puts what other cores and interrupts have enqueued behind what is here, or hands it to `by_deadline` if it has one. Returns
    /// whether any of it went to the overflow list.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(never)]
    pub(super) unsafe fn drain_inboxes(&self, by_deadline: impl Fn(Runnable)) -> bool {
        let mut overflowed = false;
        // SAFETY: what comes from a queue is in hand.
        let in_hand = |process| unsafe { Runnable::new(process) };
        for process in self.take_inbox().map(in_hand) {
            if process.has_deadline() {
                by_deadline(process);
            } else {
                // SAFETY: by contract.
                overflowed |= unsafe { self.push_own(process) };
            }
        }
        for process in self.bound_inbox.take_all().map(in_hand) {
            if process.has_deadline() {
                by_deadline(process);
            } else {
                // SAFETY: the caller is the owner; just taken out of its list.
                unsafe { self.bound.push(process.into_pointer()) };
            }
        }
        overflowed
    }

    fn take_inbox(&self) -> Chain<Header> {
        let chain = self.inbox.take_all();
        // Relaxed: an estimate; what arrives meanwhile is counted by its sender.
        self.inbox_length.fetch_sub(chain.len() as u32, Ordering::Relaxed);
        chain
    }

    /// Takes the oldest: of the pinned ones and of the others, by turns.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(super) unsafe fn take_own(&self) -> Option<Runnable> {
        let bound_first = !self.bound_first.get();
        self.bound_first.set(bound_first);
        // What is usual is short, because every turn pays for it.
        if !self.bound.is_empty() && (bound_first || self.deque.is_empty() && self.overflow.is_empty()) {
            // SAFETY: the caller is the owner's core; what comes from a queue is in hand.
            return unsafe { self.bound.pop().map(|process| Runnable::new(process)) };
        }
        // SAFETY: the caller is the owner's core.
        if let Some(process) = unsafe { self.deque.pop_oldest() } {
            // SAFETY: what comes from a queue is in hand.
            return Some(unsafe { Runnable::new(process) });
        }
        if self.overflow.is_empty() && self.bound.is_empty() {
            return None;
        }
        // SAFETY: by contract.
        unsafe { self.take_anywhere() }
    }

    /// The deque is empty, or a thief was faster, and it is not the turn of what is bound.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(never)]
    unsafe fn take_anywhere(&self) -> Option<Runnable> {
        // SAFETY: the caller is the owner's core.
        let taken = unsafe { self.refill().or_else(|| self.bound.pop()) };
        // SAFETY: what comes from a queue is in hand.
        taken.map(|process| unsafe { Runnable::new(process) })
    }

    /// The deque is empty: moves the oldest of the overflow there, at most [`REFILL`] of them, because the list has a lock.
    /// Returns the first. What follows is as far behind as it was.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    unsafe fn refill(&self) -> Option<NonNull<Header>> {
        let mut oldest = self.overflow.take_some(REFILL);
        let first = oldest.pop_front();
        for process in oldest {
            // SAFETY: the caller is the owner.
            if unsafe { self.deque.push_bottom(process) }.is_err() {
                panic!("an empty deque has room for them");
            }
        }
        first
    }

    /// Takes up to half of what waits here, at most `most`, for another core: oldest first.
    pub(crate) fn steal(&self, most: usize, take: &mut dyn FnMut(Runnable)) -> Stolen {
        if most == 0 {
            return Stolen::default();
        }
        // SAFETY: what comes from a queue is in hand.
        let mut take = |process| take(unsafe { Runnable::new(process) });
        let mut count = self.deque.steal_half(most, &mut take);
        if count.taken == 0 {
            for process in self.overflow.steal_half(most) {
                take(process);
                count.taken += 1;
            }
        }
        if count.taken == 0 {
            // The whole inbox, because it can only be taken whole. What is above the share would otherwise wait for a
            // victim that is in a long slice.
            for process in self.take_inbox() {
                take(process);
                count.taken += 1;
            }
        }
        count
    }
}
