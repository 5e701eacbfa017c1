//! The core that runs the caller, with the right to do what only that core may.

use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;

use super::block::Core;
use crate::sched::process::{Priority, Runnable};
use crate::sync::PreemptGuard;

/// Proof that the caller runs on a core and stays there, and that it has not interrupted anything that uses the queues: so the owner's side of
/// its queues may be used.
pub(crate) struct ThisCore<'a> {
    core: &'static Core,
    // Not `Send`: it means nothing on another core.
    here: PhantomData<(&'a PreemptGuard, *mut ())>,
}

const _: () = assert!(size_of::<PreemptGuard>() == 0);

impl<'a> ThisCore<'a> {
    /// `None` on a thread that is no core, and in an interrupt: there the code that was interrupted may be in the middle of
    /// the queues, unless that is the core's loop, waiting.
    #[inline(always)]
    pub(crate) fn of(here: &'a PreemptGuard) -> Option<Self> {
        let core = Core::current(here).filter(|core| !core.in_interrupt.get() || core.waits.get())?;
        Some(Self { core, here: PhantomData })
    }

    /// Where the core's loop waits, or in an interrupt then. `None` elsewhere.
    #[inline(always)]
    pub(crate) fn that_waits(here: &'a PreemptGuard) -> Option<Self> {
        let core = Core::current(here).filter(|core| core.waits.get())?;
        Some(Self { core, here: PhantomData })
    }

    /// In an interrupt that has met a turn. `None` elsewhere.
    ///
    /// It is for [`Self::choose`] alone, because the end of such an interrupt may leave the turn, or the end of the section that it has met. That
    /// section may be in the middle of the queues.
    #[inline(always)]
    pub(crate) fn that_may_leave_turn(here: &'a PreemptGuard) -> Option<Self> {
        let core = Core::current(here).filter(|core| core.has_met_turn.get())?;
        Some(Self { core, here: PhantomData })
    }

    /// # Safety
    /// The caller is a core's loop: preemption is disabled, and stays so as long as this lives.
    #[inline(always)]
    pub(crate) unsafe fn of_loop() -> Self {
        // SAFETY: by contract; a loop runs where the block was set.
        Self { core: unsafe { Core::this() }, here: PhantomData }
    }

    /// The core, without the right.
    #[inline(always)]
    pub(crate) fn core(&self) -> &'static Core {
        self.core
    }

    /// The proof that preemption is disabled.
    #[inline(always)]
    pub(crate) fn here(&self) -> &PreemptGuard {
        // SAFETY: a guard has no bytes, so a reference to one needs none; and what it proves holds while `self` lives, by the contract of
        // `of_loop`, or because a guard was shown.
        unsafe { NonNull::dangling().as_ref() }
    }

    /// Puts a process at the back of its queue. Returns whether it may run elsewhere, too.
    #[inline(always)]
    pub(crate) fn push(&self, process: Runnable) -> bool {
        // SAFETY: the caller is on this core, preemption is disabled, and no interrupt is being handled.
        unsafe { self.core.queue.push_own(process) }
    }

    /// Puts a process, which is `Normal` and not pinned, into the run-next slot, and the one that was there at the back of its
    /// queue. Returns whether there was one.
    #[inline(always)]
    pub(crate) fn put_next(&self, process: Runnable) -> bool {
        // SAFETY: as in `push`.
        unsafe { self.core.queue.put_next(process) }
    }

    /// Takes the next process to run.
    #[inline(always)]
    pub(crate) fn take(&self) -> Option<Runnable> {
        // SAFETY: as in `push`.
        unsafe { self.core.queue.take() }
    }

    /// Chooses what has the next turn. The caller is the loop between two turns, what interrupts it while it waits, or what interrupts a turn
    /// and leaves it, or takes back the choice; there is no choice yet.
    #[inline(always)]
    pub(crate) fn choose(&self, process: Runnable) {
        // Who is not the loop has this value only while that waits, or in an interrupt of a turn.
        self.core.chosen.put(process.into_pointer());
    }

    /// Takes what is chosen. The caller is as for [`Self::choose`], or in a turn, where an interrupt may have chosen in the section that goes on.
    #[inline(always)]
    pub(crate) fn take_chosen(&self) -> Option<Runnable> {
        // SAFETY: it came from a `Runnable`, and is taken once.
        self.core.chosen.take().map(|process| unsafe { Runnable::new(process) })
    }

    /// See [`RunQueue::is_ordinary`](super::run_queue::RunQueue::is_ordinary).
    #[inline(always)]
    pub(crate) fn is_ordinary(&self) -> bool {
        // SAFETY: as in `push`.
        unsafe { self.core.queue.is_ordinary() }
    }

    /// Takes the oldest with this priority.
    pub(crate) fn take_of(&self, priority: Priority) -> Option<Runnable> {
        // SAFETY: as in `push`.
        unsafe { self.core.queue.take_of(priority) }
    }

    /// See [`RunQueue::rotate`](super::run_queue::RunQueue::rotate).
    #[inline(always)]
    pub(crate) fn rotate(&self, process: Runnable) -> Runnable {
        // SAFETY: as in `push`.
        unsafe { self.core.queue.rotate(process) }
    }

    /// See [`RunQueue::take_ordinary`](super::run_queue::RunQueue::take_ordinary).
    #[inline(always)]
    pub(crate) fn take_ordinary(&self) -> Option<Runnable> {
        // SAFETY: as in `push`.
        unsafe { self.core.queue.take_ordinary() }
    }

    /// See [`RunQueue::prefer_bound`](super::run_queue::RunQueue::prefer_bound).
    pub(crate) fn prefer_bound(&self) {
        // SAFETY: as in `push`.
        unsafe { self.core.queue.prefer_bound() };
    }
}

impl Deref for ThisCore<'_> {
    type Target = Core;

    #[inline(always)]
    fn deref(&self) -> &Core {
        self.core
    }
}
