//! Shares of CPU time: an account that several processes are charged to, and those of them that were put aside because it is used up.
//!
//! What is left is decided in [`budget`](super::budget). Who charges, puts aside and begins again is in `run/aside.rs`. Everything is under
//! one lock, which only a core's loop takes, or who asks for the account; never an interrupt.

use core::cell::UnsafeCell;
use core::ptr::NonNull;

use super::budget::Budget;
use super::header::Header;
use super::runnable::Runnable;
use crate::mem::{self, OutOfMemory};
use crate::queue::Chain;
use crate::sync::{ReferenceCount, SpinLock};
use crate::time::Timer;

/// What a share has been used for, in clock ticks.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    /// By all turns that have ended.
    pub total: u64,
    /// The most that was used of one period, with what earlier ones had used of it.
    pub most: u64,
    /// How often a process was put aside.
    pub put_aside: u64,
    /// How many are.
    pub aside: usize,
}

struct Inside {
    budget: Budget,
    /// Those that had come back, and found nothing left: before all others.
    first: Chain<Header>,
    aside: Chain<Header>,
    /// The timer is armed, or about to be: while anybody is aside.
    is_armed: bool,
    used: Used,
}

/// A share. Its processes keep it, and the timer while it is armed.
pub(crate) struct Share {
    inside: SpinLock<Inside>,
    /// Used by whoever has set `is_armed`, until it has fired.
    timer: UnsafeCell<Timer>,
    references: ReferenceCount,
}

// SAFETY: the timer is its queue's while armed, and of the one who has set `is_armed` before; the rest is locked or counted.
unsafe impl Sync for Share {}
// SAFETY: as above; the processes in the chain may be handed to any core.
unsafe impl Send for Share {}

/// What becomes of a process that is to begin a turn.
pub(crate) enum Admission {
    /// It begins; so much is left.
    Begins(Runnable, u64),
    /// It was put aside. If the timer is to be armed, until when: by the caller, who was told alone.
    Aside(Option<u64>),
}

impl Inside {
    fn take_one(&mut self) -> Option<NonNull<Header>> {
        let process = self.first.pop_front().or_else(|| self.aside.pop_front())?;
        self.used.aside -= 1;
        // SAFETY: it is aside, so alive, and was in hand then.
        unsafe { process.as_ref() }.set_come_back(true);
        Some(process)
    }

    fn put_aside(&mut self, process: Runnable) {
        let chain = if process.has_come_back() { &mut self.first } else { &mut self.aside };
        // SAFETY: it is in hand, so in no list, and alive.
        unsafe { chain.push_back(process.into_pointer()) };
        self.used.aside += 1;
    }
}

impl Share {
    /// Charges a turn.
    pub(crate) fn charge(&self, began: u64, now: u64) {
        let ticks = now.saturating_sub(began);
        let mut inside = self.inside.lock();
        let used = inside.budget.charge(ticks, now);
        inside.used.most = inside.used.most.max(used);
        inside.used.total = inside.used.total.saturating_add(ticks);
    }

    /// Puts a process aside if nothing is left.
    pub(crate) fn admit(&self, process: Runnable, now: u64) -> Admission {
        let mut inside = self.inside.lock();
        if let Some(left) = inside.budget.left(now) {
            process.set_come_back(false);
            return Admission::Begins(process, left);
        }
        inside.put_aside(process);
        inside.used.put_aside += 1;
        let is_first = !core::mem::replace(&mut inside.is_armed, true);
        Admission::Aside(is_first.then(|| inside.budget.next()))
    }

    /// One that is aside comes back, if there is one and something is left.
    pub(crate) fn take_one_if_left(&self, now: u64) -> Option<NonNull<Header>> {
        let mut inside = self.inside.lock();
        inside.budget.left(now).and_then(|_| inside.take_one())
    }

    /// A process that has had its turn and wants more goes behind those that are aside, and the first of these comes back in its place. If
    /// nobody is aside, or nothing is left, it stays: then it comes back itself.
    pub(crate) fn exchange(&self, process: Runnable, now: u64) -> Result<NonNull<Header>, Runnable> {
        let mut inside = self.inside.lock();
        if inside.budget.left(now).is_none() {
            return Err(process);
        }
        let Some(other) = inside.take_one() else { return Err(process) };
        // The timer stays armed.
        inside.put_aside(process);
        Ok(other)
    }

    /// One that is aside comes back, if there is one.
    pub(crate) fn take_one(&self) -> Option<NonNull<Header>> {
        self.inside.lock().take_one()
    }

    /// The timer has fired and is not armed any more, and those that come back have been taken. If others are aside, it is to be armed again,
    /// until when: by the caller. Otherwise the next one that is put aside arms it.
    pub(crate) fn go_on(&self, now: u64) -> Option<u64> {
        let mut inside = self.inside.lock();
        inside.is_armed = inside.used.aside > 0;
        // For the period that `now` is in.
        let _ = inside.budget.left(now);
        inside.is_armed.then(|| inside.budget.next())
    }

    pub(crate) fn used(&self) -> Used {
        self.inside.lock().used
    }

    /// For whoever was told to arm it.
    pub(crate) fn timer(&self) -> NonNull<Timer> {
        // SAFETY: a cell's content is somewhere.
        unsafe { NonNull::new_unchecked(self.timer.get()) }
    }
}

/// A reference to a share.
pub(crate) struct ShareRef(NonNull<Share>);

// SAFETY: a share may be used, and freed, on any core.
unsafe impl Send for ShareRef {}
// SAFETY: as above.
unsafe impl Sync for ShareRef {}

impl ShareRef {
    /// A share of so much in each period, in clock ticks.
    pub(crate) fn new(each: u64, period: u64, now: u64) -> Result<Self, OutOfMemory> {
        let inside = Inside {
            budget: Budget::new(each, period, now),
            first: Chain::new(),
            aside: Chain::new(),
            is_armed: false,
            used: Used { total: 0, most: 0, put_aside: 0, aside: 0 },
        };
        let share = Share {
            inside: SpinLock::new(inside),
            timer: UnsafeCell::new(Timer::new(false)),
            references: ReferenceCount::new(1),
        };
        let share = mem::try_box(share).map_err(|(error, _)| error)?;
        Ok(Self(NonNull::from(alloc::boxed::Box::leak(share))))
    }

    /// For a waker: the reference goes with it.
    pub(crate) fn into_pointer(self) -> NonNull<Share> {
        core::mem::ManuallyDrop::new(self).0
    }

    /// # Safety
    /// It came from [`Self::into_pointer`], whose reference is given back by this.
    pub(crate) unsafe fn from_pointer(share: NonNull<Share>) -> Self {
        Self(share)
    }
}

impl core::ops::Deref for ShareRef {
    type Target = Share;

    fn deref(&self) -> &Share {
        // SAFETY: its own reference keeps it.
        unsafe { self.0.as_ref() }
    }
}

impl Clone for ShareRef {
    fn clone(&self) -> Self {
        self.references.add();
        Self(self.0)
    }
}

impl Drop for ShareRef {
    fn drop(&mut self) {
        if self.references.release() {
            // SAFETY: it came from a box, and the last reference is gone: so nobody is aside, and the timer is in no queue.
            drop(unsafe { alloc::boxed::Box::from_raw(self.0.as_ptr()) });
        }
    }
}
