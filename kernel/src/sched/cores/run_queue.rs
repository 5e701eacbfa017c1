//! One core's run queues: four priorities, a run-next slot, and the choice of what runs next.
//!
//! Each priority has several parts, because different cores put processes there:
//!
//! - the *deque*: what the owner enqueued; thieves take from its top;
//! - the *overflow*: what the owner enqueued while the deque was full, so nothing is lost;
//! - the *inbox*: what other cores and interrupts enqueued; thieves may empty it too, so that what was
//!   delivered to a core in a long slice does not wait for it;
//! - the *bound* list: processes pinned to this core, with an inbox of its own. No thief looks through it: a thief must
//!   not have a pinned process in hand even for the moment that it takes to give it back.
//!
//! The owner takes the oldest first: newest first would let a process that yields starve its neighbours.
//! The *run-next slot* is for the `Normal` process that was woken last, by this core. It may jump the queue
//! a bounded number of times in a row, because what it was woken for is still in the cache.
//!
//! Bounds that follow, and are tested: a runnable `Max` process waits for at most the slice in progress;
//! `Low` waits for at most `normal_per_low` `Normal` turns; the head of `Normal` waits for at most
//! `run_next_turns` turns from the run-next slot.

use core::cell::Cell;
use core::ptr::NonNull;

use super::ready_mask::ReadyMask;
use crate::arch::atomic::{AtomicPtr, AtomicU32, Ordering};
use crate::arch::{Full, Steal};
use crate::in_place::write_fields;
use crate::queue::{Chain, Deque, Inbox, Overflow, Stolen};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::{Header, Priority, Runnable};

/// Slots of one deque; more than this goes to the overflow list.
pub(crate) const DEQUE_SLOTS: usize = 1024;

/// How many processes at most are moved from the overflow to the deque at once: about 650 instructions with preemption
/// disabled, half of them with the overflow's lock held. Moving 512 at a time instead would take 10,000, and save half a per
/// cent of a turn among 3000 processes.
const REFILL: usize = 32;

const _: () = assert!(REFILL <= DEQUE_SLOTS);

/// The bit of [`RunQueue::ready`] for everything but the queues, see `run/attention.rs`.
const ATTENTION: u32 = 1 << 8;

/// The bit that says that something may be in an overflow list.
const OVERFLOWED: u32 = 1 << 9;

/// The bit for what other cores and interrupts have put into the inboxes of a priority.
const fn arrived(priority: Priority) -> u32 {
    priority.bit() << 4
}

// In this order, so that all but the slots is near the beginning.
#[repr(C)]
pub(crate) struct PriorityQueue {
    overflow: Overflow<Header>,
    inbox: Inbox<Header>,
    /// How many are in the inbox, roughly: counted before they are visible.
    inbox_length: AtomicU32,
    bound: Overflow<Header>,
    /// What other cores and interrupts enqueued that is pinned to this core.
    bound_inbox: Inbox<Header>,
    deque: Deque<Header, DEQUE_SLOTS>,
}

impl PriorityQueue {
    /// # Safety
    /// The place is fit to be written.
    unsafe fn init(place: *mut Self) {
        // SAFETY: the caller promised a place fit to be written.
        unsafe {
            write_fields!(place => Self {
                overflow: Overflow::new(),
                inbox: Inbox::new(),
                inbox_length: AtomicU32::new(0),
                bound: Overflow::new(),
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
    fn is_empty(&self) -> bool {
        self.stealable() == 0 && self.inbox.is_empty() && self.bound.len() == 0 && self.bound_inbox.is_empty()
    }

    /// Puts a process at the back. Returns whether it went to the overflow list.
    ///
    /// # Safety
    /// The caller is the owner's core, with preemption disabled and not in an interrupt.
    #[inline(always)]
    unsafe fn push_own(&self, process: Runnable) -> bool {
        if process.is_pinned() {
            // SAFETY: what is in hand is in no list; processes may be handed to any core.
            unsafe { self.bound.push(process.into_pointer()) };
            return false;
        }
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

    /// Puts what other cores and interrupts have enqueued behind what is here. Returns whether any of it went to the
    /// overflow list.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(never)]
    unsafe fn drain_inboxes(&self) -> bool {
        let mut overflowed = false;
        for process in self.take_inbox() {
            // SAFETY: by contract; what comes from a queue is in hand.
            overflowed |= unsafe { self.push_own(Runnable::new(process)) };
        }
        for process in self.bound_inbox.take_all() {
            // SAFETY: just taken out of its list; processes may be handed to any core.
            unsafe { self.bound.push(process) };
        }
        overflowed
    }

    fn take_inbox(&self) -> Chain<Header> {
        let chain = self.inbox.take_all();
        // Relaxed: an estimate; what arrives meanwhile is counted by its sender.
        self.inbox_length.fetch_sub(chain.len() as u32, Ordering::Relaxed);
        chain
    }

    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    unsafe fn take_own(&self, bound_first: bool) -> Option<Runnable> {
        // What is usual is short, because every turn pays for it.
        if (!bound_first | self.bound.is_empty())
            // SAFETY: the caller is the owner's core.
            && let Some(process) = unsafe { self.deque.pop_oldest() }
        {
            // SAFETY: what comes from a queue is in hand.
            return Some(unsafe { Runnable::new(process) });
        }
        // SAFETY: by contract.
        unsafe { self.take_anywhere(bound_first) }
    }

    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(never)]
    unsafe fn take_anywhere(&self, bound_first: bool) -> Option<Runnable> {
        let bound = || self.bound.pop();
        // SAFETY: the caller is the owner's core.
        let unbound = || unsafe { self.deque.pop_oldest().or_else(|| self.refill()) };
        let taken =
            if bound_first { bound().or_else(unbound).or_else(bound) } else { unbound().or_else(bound) };
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
                unreachable!("an empty deque has room for them");
            }
        }
        first
    }

    /// Takes up to half of what waits here, at most `most`, for another core: oldest first.
    pub(crate) fn steal(&self, most: usize, mut take: impl FnMut(Runnable)) -> Stolen {
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

/// Turns one after another that have passed over others, in one word: those from the run-next slot, and those of `Normal`
/// while `Low` waited.
struct Streaks(Cell<u64>);

/// A streak from the run-next slot is not counted beyond this, which is more than the setting may be.
const MOST_STREAK: u64 = 1 << 20;

impl Streaks {
    fn next(&self) -> u64 {
        self.0.get() & u64::from(u32::MAX)
    }

    fn normal(&self) -> u64 {
        self.0.get() >> 32
    }

    fn set(&self, next: u64, normal: u64) {
        // Neither comes near 2^32: they are bounded by `MOST_STREAK` and by a setting.
        self.0.set(next | normal << 32);
    }
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
    bound_first: Cell<bool>,
    /// In an order of their own, see `of`.
    queues: [PriorityQueue; Priority::COUNT],
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
                streaks: Streaks(Cell::new(0)),
                bound_first: Cell::new(false),
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
    pub(crate) fn stealable(&self) -> usize {
        self.queues.iter().map(PriorityQueue::stealable).sum()
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
        self.stealable() + bound + usize::from(self.run_next_is_taken())
    }

    /// How many wait, by priority, as far as is published.
    pub(crate) fn waiting_by_priority(&self) -> [usize; Priority::COUNT] {
        let mut waiting = Priority::ALL.map(|priority| {
            let queue = self.of(priority);
            // A pinned process that another core has just sent is not counted: its inbox has no length.
            queue.stealable() + queue.bound.len()
        });
        waiting[Priority::Normal.index()] += usize::from(self.run_next_is_taken());
        waiting
    }

    /// The most urgent priority of which something may wait here.
    pub(crate) fn most_urgent(&self) -> Option<Priority> {
        let mask = self.ready.bits() | if self.run_next_is_taken() { Priority::Normal.bit() } else { 0 };
        Priority::ALL.into_iter().find(|priority| mask & priority.bit() != 0)
    }

    /// Whether a process waits in the run-next slot.
    pub(crate) fn run_next_is_taken(&self) -> bool {
        // Relaxed: an estimate.
        !self.next.load(Ordering::Relaxed).is_null()
    }

    /// Whether nothing waits here, as far as the owner or a core that has just passed a full barrier can
    /// see.
    pub(crate) fn is_empty(&self) -> bool {
        !self.run_next_is_taken() && self.queues.iter().all(PriorityQueue::is_empty)
    }

    /// Puts a process at the back of its queue.
    ///
    /// # Safety
    /// The caller is the owner's core, with preemption disabled and not in an interrupt.
    #[inline(always)]
    pub(super) unsafe fn push_own(&self, process: Runnable) {
        let priority = process.priority();
        // SAFETY: the caller is the owner's core.
        if unsafe { self.of(priority).push_own(process) } {
            self.ready.flag_own(OVERFLOWED);
        }
        self.ready.flag_own(priority.bit());
    }

    /// Makes the next choice prefer what is pinned to this core, once. For a resident whose piece was detached, because
    /// it must not wait for that very piece.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    pub(super) unsafe fn prefer_bound(&self) {
        // `take` turns it around before it looks.
        self.bound_first.set(false);
    }

    /// Puts a process into the run-next slot, and the one that was there at the back of its queue. Returns
    /// whether there was one.
    ///
    /// # Safety
    /// As for [`Self::push_own`]; the process is `Normal` and not pinned.
    pub(super) unsafe fn put_next(&self, process: Runnable) -> bool {
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

    fn flag(&self, priority: Priority) {
        self.ready.flag(priority.bit() | arrived(priority));
    }

    fn unflag(&self, priority: Priority) {
        // Both bits, also if something is there after all, because it may have arrived.
        self.ready.unflag(priority.bit() | arrived(priority), || self.of(priority).is_empty());
    }

    /// Takes the next process to run.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(super) unsafe fn take(&self) -> Option<Runnable> {
        loop {
            let mask = self.ready.bits();
            let priority = self.next_priority(mask)?;
            if priority == Priority::Normal
                && self.run_next_is_taken()
                && (mask & priority.bit() == 0 || self.streaks.next() < settings::get(Setting::RunNextTurns))
                && let Some(process) = self.take_next()
            {
                // Beyond the setting when nothing else waits.
                self.streaks
                    .set(self.streaks.next().saturating_add(1).min(MOST_STREAK), self.streaks.normal());
                return Some(process);
            }
            self.streaks.set(0, self.streaks.normal());
            self.bound_first.set(!self.bound_first.get());
            if mask & arrived(priority) != 0 {
                // First the bit, then the look: see `ReadyMask`.
                self.ready.clear(arrived(priority));
                // SAFETY: the caller is the owner's core.
                if unsafe { self.of(priority).drain_inboxes() } {
                    self.ready.flag_own(OVERFLOWED);
                }
            }
            if mask & OVERFLOWED != 0 && self.queues.iter().all(|queue| queue.overflow.is_empty()) {
                // The owner alone puts anything there.
                self.ready.clear(OVERFLOWED);
            }
            // SAFETY: as above.
            if let Some(process) = unsafe { self.of(priority).take_own(self.bound_first.get()) } {
                return Some(process);
            }
            self.unflag(priority);
        }
    }

    /// Whether nothing wants a look but the deque of `Normal`.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(super) unsafe fn is_ordinary(&self) -> bool {
        self.ready.are_only(Priority::Normal.bit())
            && !self.run_next_is_taken()
            && self.of(Priority::Normal).bound.is_empty()
    }

    /// Puts a `Normal` process that is not pinned at the back, and takes the next to run, while [`Self::is_ordinary`]. Hands
    /// it to `has_no_room` if there is no room, and then takes none; nor if a thief was faster.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(super) unsafe fn rotate(
        &self,
        process: Runnable,
        has_no_room: impl FnOnce(Runnable),
    ) -> Option<Runnable> {
        // As in `take` and `next_priority`, where neither the run-next slot nor `Low` has anything. Whose turn it is, the
        // pinned ones' or the others', does not matter, because none is pinned.
        self.streaks.set(0, 0);
        let process = process.into_pointer();
        // SAFETY: by contract.
        match unsafe { self.of(Priority::Normal).deque.rotate(process) } {
            // SAFETY: what comes from a queue is in hand.
            Ok(Steal::Taken(next)) => Some(unsafe { Runnable::new(next) }),
            Ok(Steal::Lost | Steal::Empty) => None,
            Err(Full) => {
                // SAFETY: it was in hand, and went nowhere.
                has_no_room(unsafe { Runnable::new(process) });
                None
            }
        }
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

    /// Empties the run-next slot.
    pub(crate) fn take_next(&self) -> Option<Runnable> {
        // AcqRel: pairs with the swap in `put_next`.
        let process = NonNull::new(self.next.swap(core::ptr::null_mut(), Ordering::AcqRel))?;
        // SAFETY: the swap made it ours.
        Some(unsafe { Runnable::new(process) })
    }

    fn next_priority(&self, mask: u32) -> Option<Priority> {
        if mask & Priority::Max.bit() != 0 {
            return Some(Priority::Max);
        }
        if mask & Priority::High.bit() != 0 {
            return Some(Priority::High);
        }
        let normal = mask & Priority::Normal.bit() != 0 || self.run_next_is_taken();
        // Not the bit alone: while it is stale, no turns must be counted in favour of `Low`.
        let low = mask & Priority::Low.bit() != 0 && !self.of(Priority::Low).is_empty();
        if !low && mask & Priority::Low.bit() != 0 {
            self.unflag(Priority::Low);
        }
        if !low {
            // The turns are counted while both wait, and not saved up.
            self.count_normal_turns(0);
            return normal.then_some(Priority::Normal);
        }
        let passed_over = self.streaks.normal();
        if normal && passed_over < settings::get(Setting::NormalPerLow) {
            self.count_normal_turns(passed_over + 1);
            return Some(Priority::Normal);
        }
        self.count_normal_turns(0);
        Some(Priority::Low)
    }

    fn count_normal_turns(&self, normal: u64) {
        self.streaks.set(self.streaks.next(), normal);
    }
}
