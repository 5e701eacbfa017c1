//! The timers that would wake one process, so that its crash takes them out of their queues.
//!
//! A timer is its process's while it is armed with that process's own waker. When the process has crashed it would wake
//! nobody: left in its queue it would count as work until it fires, and keep the process's memory. Its own memory stays as it
//! is, because the future that it belongs to may have been moved to another process, which finds it taken out and arms
//! another.
//!
//! A list's lock comes after that of a queue. A timer comes into a list, and leaves it, under the lock of its queue; so
//! whoever holds that lock and finds a timer of that queue in a list knows that it is in the queue.

use core::mem;
use core::ptr::{self, NonNull};

use super::timer::Timer;
use crate::sync::{PreemptGuard, SpinLock};

/// The timers of one process.
pub(crate) struct OwnedTimers(SpinLock<List>);

struct List {
    first: *mut Timer,
    /// The process has crashed: nothing is linked any more.
    is_closed: bool,
}

// SAFETY: what is linked is used under the lock, from whatever core.
unsafe impl Send for List {}

/// A timer's place in the list of its process.
pub(crate) struct Link {
    previous: *mut Timer,
    next: *mut Timer,
    is_linked: bool,
    core: u8,
}

impl Link {
    pub(crate) const NONE: Self =
        Self { previous: ptr::null_mut(), next: ptr::null_mut(), is_linked: false, core: 0 };
}

impl OwnedTimers {
    pub(crate) const fn new() -> Self {
        Self(SpinLock::new(List { first: ptr::null_mut(), is_closed: false }))
    }

    /// From now on nothing is linked.
    pub(super) fn close(&self) {
        self.0.lock().is_closed = true;
    }

    /// In which queue the first is.
    pub(super) fn core_of_first(&self) -> Option<usize> {
        let list = self.0.lock();
        // SAFETY: under the lock; what is linked is alive.
        unsafe { list.first.as_ref() }.map(|timer| timer.link.core.into())
    }

    /// Takes out the first, if that is in the queue of `core`, whose lock the caller holds.
    pub(super) fn take_first(&self, core: usize) -> Option<NonNull<Timer>> {
        let mut list = self.0.lock();
        let first = NonNull::new(list.first)?;
        // SAFETY: under the lock; what is linked is alive.
        unsafe {
            if usize::from(first.as_ref().link.core) != core {
                return None;
            }
            remove(&mut list, first);
        }
        Some(first)
    }
}

/// Notes a timer that is armed under its process, if its waker is a process's own.
///
/// # Safety
/// The timer is in the queue of `core`, whose lock the caller holds, and in no list.
pub(crate) unsafe fn link(timer: NonNull<Timer>, core: usize) {
    // SAFETY: by contract; the waker keeps its process, and stays while the timer is linked.
    unsafe {
        let Some(owner) = (*timer.as_ptr()).owner else { return };
        let mut list = owner.as_ref().0.lock();
        if list.is_closed {
            return;
        }
        // Their links, here and in `remove`, and not the whole: see `state.rs`.
        if !list.first.is_null() {
            (*list.first).link.previous = timer.as_ptr();
        }
        (*timer.as_ptr()).link =
            Link { previous: ptr::null_mut(), next: list.first, is_linked: true, core: core as u8 };
        list.first = timer.as_ptr();
    }
}

/// Takes a timer out of its process's list, if it is in one.
///
/// # Safety
/// The caller holds the lock of the timer's queue, and has not changed its waker.
pub(crate) unsafe fn unlink(timer: NonNull<Timer>, here: &PreemptGuard) {
    // SAFETY: the caller holds the lock of the timer's queue.
    unsafe {
        if timer.as_ref().link.is_linked
            && let Some(owner) = (*timer.as_ptr()).owner
        {
            remove(&mut owner.as_ref().0.lock_under(here), timer);
        }
    }
}

/// # Safety
/// The timer is in the list, whose lock the caller holds.
unsafe fn remove(list: &mut List, timer: NonNull<Timer>) {
    // SAFETY: by contract; its neighbours are in the list, too.
    unsafe {
        let Link { previous, next, .. } = mem::replace(&mut (*timer.as_ptr()).link, Link::NONE);
        if previous.is_null() {
            list.first = next;
        } else {
            (*previous).link.next = next;
        }
        if !next.is_null() {
            (*next).link.previous = previous;
        }
    }
}
