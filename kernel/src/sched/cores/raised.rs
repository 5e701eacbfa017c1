//! What interrupts have raised on a core, until its loop does what it is for. What that is, is known in `actor/signal.rs`. Other code leaves
//! here to the loop what must be done whatever becomes of that code, and would take too long with preemption disabled (`actor/mail/waiting_senders.rs`).
//!
//! An interrupt's handler takes no lock, and may have interrupted whoever holds one. So it puts what it raises into a list of its core's
//! that takes no memory, and its core's loop goes through that before it looks at its queues again. What is for somebody urgent has a
//! list of its own, because it does not wait for the end of the turn that was interrupted (`run/preempt.rs`).

use core::ptr::NonNull;

use super::raised_flag::RaisedFlag;
use crate::arch::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::mem::stack::StackBlock;
use crate::queue::{Inbox, Linked, OwnList};
use crate::sched::cores::Core;
use crate::sync::PreemptGuard;

/// What can be raised: the first part of what it is for.
#[repr(C)]
pub(crate) struct Raisable {
    next: AtomicPtr<Self>,
    flag: RaisedFlag,
    urgent: AtomicBool,
    carry_out: unsafe fn(NonNull<Self>),
}

// SAFETY: nothing else names the link.
unsafe impl Linked for Raisable {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

impl Raisable {
    /// One for which a core's loop calls `carry_out`: it must be short, run nothing of the application's, and be right for what this is the
    /// first part of.
    pub(crate) const fn new(carry_out: unsafe fn(NonNull<Self>)) -> Self {
        Self {
            next: AtomicPtr::new(core::ptr::null_mut()),
            flag: RaisedFlag::new(),
            urgent: AtomicBool::new(false),
            carry_out,
        }
    }

    /// Says whether it is for somebody of priority `Max` or `High`.
    pub(crate) fn set_urgent(&self, is_urgent: bool) {
        // Relaxed: it says in which list it goes, and either is right.
        self.urgent.store(is_urgent, Ordering::Relaxed);
    }

    /// It is raised. In an interrupt its core's loop carries it out, unless it waits for that already; elsewhere that is done at once. Whether it
    /// waited already.
    pub(crate) fn raise(&'static self) -> bool {
        let here = PreemptGuard::new();
        if let Some(core) = Core::current(&here).filter(|core| core.is_in_handler()) {
            return !self.put_into_list(core);
        }
        // No interrupt, wherever the caller goes on.
        drop(here);
        // SAFETY: it is a whole one, and stays.
        unsafe { (self.carry_out)(NonNull::from(self)) };
        false
    }

    /// The loop of this core carries it out, whoever the caller is, unless some loop is about to. Whether there is a core.
    pub(crate) fn leave_to_loop(&'static self, here: &PreemptGuard) -> bool {
        let Some(core) = Core::current(here) else { return false };
        debug_assert!(!core.is_in_handler(), "something was left to the loop by an interrupt");
        // Relaxed: as in `set_urgent`.
        if self.urgent.load(Ordering::Relaxed) {
            // What waits in a list already stays there.
            if self.put_into_list(core) {
                // Or the loop would come when the turn ends, or the one that it begins.
                StackBlock::current().preempt().request();
            }
        } else if self.flag.set() {
            // SAFETY: preemption is disabled on this core, in no interrupt; it stays, and is in no list: its flag was clear.
            unsafe { core.raised.left.push(NonNull::from(self)) };
            core.ask_for_timers();
        }
        true
    }

    /// Puts it into the list of the caller's core, unless it is in one. Whether it has.
    fn put_into_list(&'static self, core: &Core) -> bool {
        let is_first = self.flag.set();
        if is_first {
            // Relaxed: as in `set_urgent`. Read once, for what follows depends on the list that it is in.
            let is_urgent = self.urgent.load(Ordering::Relaxed);
            core.raised.push(self, is_urgent);
            // A loop that waits looks into the list of what is urgent by itself (`run/idle.rs`).
            if !(is_urgent && core.waits.get()) {
                core.ask_for_timers();
            }
        }
        is_first
    }
}

/// What was raised on one core.
pub(crate) struct Raised {
    urgent: Inbox<Raisable>,
    other: Inbox<Raisable>,
    /// What waits for its turn to be carried out, oldest first. Of the loop, and of code in the core's turns with preemption disabled; no interrupt
    /// touches it.
    left: OwnList<Raisable>,
}

impl Raised {
    pub(super) fn new() -> Self {
        Self { urgent: Inbox::new(), other: Inbox::new(), left: OwnList::new() }
    }

    fn push(&self, item: &'static Raisable, is_urgent: bool) {
        let list = if is_urgent { &self.urgent } else { &self.other };
        // SAFETY: it stays, and is in no list: its flag was clear.
        unsafe { list.push(NonNull::from(item)) };
    }

    /// Whether anything waits for the loop.
    #[inline(always)]
    pub(crate) fn has_any(&self) -> bool {
        !self.urgent.is_empty() || !self.other.is_empty() || !self.left.is_empty()
    }

    /// Whether anything waits that is for somebody urgent.
    #[inline(always)]
    pub(crate) fn has_urgent(&self) -> bool {
        !self.urgent.is_empty()
    }

    /// Carries out what waits, what is urgent first, and of the rest as much until it is to stop, but one at least: what is left waits for the
    /// next call, before what was raised meanwhile.
    ///
    /// # Safety
    /// The caller is the core's loop, and holds no lock.
    #[inline(never)]
    pub(crate) unsafe fn carry_out(&self, is_to_stop: impl Fn() -> bool) {
        // SAFETY: by contract.
        unsafe { self.carry_out_urgent() };
        for item in self.other.take_all() {
            // SAFETY: the caller is the core's loop; it stays, and is in no list any more. It has its flag still: whoever raises it leaves it here.
            unsafe { self.left.push(item) };
        }
        // What comes in again meanwhile waits for the next call.
        for _ in 0..self.left.len() {
            // SAFETY: as above.
            let Some(item) = (unsafe { self.left.pop() }) else { return };
            // SAFETY: it was taken out.
            unsafe { carry_out_one(item) };
            if is_to_stop() {
                return;
            }
        }
    }

    /// The loop ends, and nothing is carried out any more. What waits may be raised again, where there are other cores after these.
    pub(crate) fn give_up(&self) {
        for list in [&self.urgent, &self.other] {
            for item in list.take_all() {
                // SAFETY: what was pushed stays, and was taken out.
                unsafe { item.as_ref() }.flag.clear();
            }
        }
        // SAFETY: the caller is the loop.
        while let Some(item) = unsafe { self.left.pop() } {
            // SAFETY: as above.
            unsafe { item.as_ref() }.flag.clear();
        }
    }

    /// Carries out what is urgent.
    ///
    /// # Safety
    /// As for [`Self::carry_out`].
    #[inline(never)]
    pub(crate) unsafe fn carry_out_urgent(&self) {
        for item in self.urgent.take_all() {
            // SAFETY: what was pushed stays, and was taken out.
            unsafe { carry_out_one(item) };
        }
    }
}

/// # Safety
/// It was taken out of a list by the core's loop, which holds no lock.
unsafe fn carry_out_one(item: NonNull<Raisable>) {
    // SAFETY: by contract.
    let raisable = unsafe { item.as_ref() };
    raisable.flag.clear();
    // SAFETY: it is a whole one.
    unsafe { (raisable.carry_out)(item) };
}
