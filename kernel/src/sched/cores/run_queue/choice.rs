//! The choice of what a core runs next: of which priority, and whether from the run-next slot.
//!
//! Bounds that follow, and are tested: a runnable `Max` process waits for at most the slice in progress;
//! `Low` waits for at most `normal_per_low` `Normal` turns; the head of `Normal` waits for at most
//! `run_next_turns` turns from the run-next slot.
//!
//! Nothing here starts what it chose, or looks at what waits on another core.

use core::ptr::NonNull;

use super::streaks::MOST_STREAK;
use super::{ASIDE, BY_DEADLINE, OVERFLOWED, RunQueue, arrived};
use crate::arch::atomic::Ordering;
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::{Priority, Runnable};

impl RunQueue {
    /// Takes the next process to run.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(in crate::sched::cores) unsafe fn take(&self) -> Option<Runnable> {
        loop {
            let mut mask = self.ready.bits();
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
            if mask & arrived(priority) != 0 {
                // First the bit, then the look: see `ReadyMask`.
                self.ready.clear(arrived(priority));
                // SAFETY: the caller is the owner's core.
                unsafe { self.drain_inboxes(priority) };
                mask = self.ready.bits();
            }
            if mask & OVERFLOWED != 0 && self.queues.iter().all(|queue| queue.overflow.is_empty()) {
                // The owner alone puts anything there.
                self.ready.clear(OVERFLOWED);
            }
            if mask & BY_DEADLINE != 0
                && priority == Priority::High
                && let Some(process) = self.take_by_deadline()
            {
                return Some(process);
            }
            // SAFETY: as above.
            if let Some(process) = unsafe { self.of(priority).take_own() } {
                return Some(process);
            }
            self.unflag(priority);
        }
    }

    /// Takes the first of those with a deadline.
    #[cold]
    #[inline(never)]
    fn take_by_deadline(&self) -> Option<Runnable> {
        let process = self.deadlines.pop();
        if process.is_none() {
            self.ready.clear(BY_DEADLINE);
        }
        process
    }

    /// Takes the oldest with this priority, the pinned ones and the others by turns; none with a deadline.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    pub(in crate::sched::cores) unsafe fn take_of(&self, priority: Priority) -> Option<Runnable> {
        if priority == Priority::Normal
            && let Some(process) = self.take_next()
        {
            return Some(process);
        }
        self.ready.clear(arrived(priority));
        // SAFETY: the caller is the owner's core.
        unsafe { self.drain_inboxes(priority) };
        // SAFETY: as above.
        unsafe { self.of(priority).take_own() }
    }

    /// Puts what has arrived where the owner looks.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    unsafe fn drain_inboxes(&self, priority: Priority) {
        // What is pinned may be among it.
        self.ready.flag_own(ASIDE);
        // SAFETY: by contract.
        if unsafe { self.of(priority).drain_inboxes(|process| self.push_by_deadline(process)) } {
            self.ready.flag_own(OVERFLOWED);
        }
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

    /// Empties the run-next slot.
    pub(crate) fn take_next(&self) -> Option<Runnable> {
        // AcqRel: pairs with the swap in `put_next`.
        let process = NonNull::new(self.next.swap(core::ptr::null_mut(), Ordering::AcqRel))?;
        // SAFETY: the swap made it ours.
        Some(unsafe { Runnable::new(process) })
    }

    /// Makes the next choice prefer what is pinned to this core, once. For a resident whose piece was detached, because
    /// it must not wait for that very piece.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    pub(in crate::sched::cores) unsafe fn prefer_bound(&self) {
        // `take_own` turns it around before it looks.
        self.queues.iter().for_each(|queue| queue.bound_first.set(false));
    }

    /// Whether nothing wants a look but the deque of `Normal`, and no streak is counted: the core's next turn is that of the oldest there.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(in crate::sched::cores) unsafe fn is_ordinary(&self) -> bool {
        self.ready.are_only(Priority::Normal.bit()) || self.is_ordinary_after_all()
    }

    /// The same after a closer look. What was put aside has had its turn, or waits for it: the run-next slot, what is pinned, and a streak, which
    /// only turns from that slot begin, and which ends with the next turn that is not of it.
    #[inline(never)]
    fn is_ordinary_after_all(&self) -> bool {
        if !self.ready.are_only(Priority::Normal.bit() | ASIDE)
            || self.run_next_is_taken()
            || !self.of(Priority::Normal).bound.is_empty()
        {
            return false;
        }
        self.streaks.set(0, 0);
        // The owner alone puts anything there.
        self.ready.clear(ASIDE);
        self.ready.are_only(Priority::Normal.bit())
    }

    /// Puts a `Normal` process that is not pinned at the back, and takes the next to run, while [`Self::is_ordinary`]: itself if no other
    /// waits.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(in crate::sched::cores) unsafe fn rotate(&self, process: Runnable) -> Runnable {
        // As in `take` and `next_priority`, where neither the run-next slot nor `Low` has anything. Whose turn it is, the
        // pinned ones' or the others', does not matter, because none is pinned.
        debug_assert!(self.streaks.next() == 0 && self.streaks.normal() == 0, "a streak goes on");
        // SAFETY: by contract; what comes from a queue is in hand.
        unsafe { Runnable::new(self.of(Priority::Normal).deque.rotate(process.into_pointer())) }
    }

    /// Takes the next to run, while [`Self::is_ordinary`]; none if the deque is empty.
    ///
    /// # Safety
    /// As for [`Self::push_own`].
    #[inline(always)]
    pub(in crate::sched::cores) unsafe fn take_ordinary(&self) -> Option<Runnable> {
        // As in `rotate`.
        debug_assert!(self.streaks.next() == 0 && self.streaks.normal() == 0, "a streak goes on");
        // What is pinned, and comes meanwhile, is next: `take_own` turns it around before it looks. It would wait for another turn otherwise.
        let queue = self.of(Priority::Normal);
        queue.bound_first.set(false);
        // SAFETY: by contract; what comes from a queue is in hand.
        unsafe { queue.deque.pop_oldest().map(|process| Runnable::new(process)) }
    }
}
