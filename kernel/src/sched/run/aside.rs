//! Processes that have a share of CPU time: each of their turns is charged, and while nothing is left they are put aside.
//!
//! That is decided at one place, before a turn begins or goes on, whoever woke or preempted the process; so one that was woken, stolen,
//! suspended or is bound to another core is treated alike. A turn that is in progress when nothing is left ends as at a slice's end,
//! whether others wait or not (`run/preempt.rs`, `run/slice.rs`).
//!
//! The first that is put aside arms a timer for the beginning of the next period; when that fires all come back to the queues, in the
//! order in which they came, and look again. Both are under the share's lock, so whoever is put aside after the timer has fired arms it
//! anew, and nobody is forgotten. The timer counts as work, so the system has not run out of it. It needs no memory.
//!
//! One that was killed is not put aside, so that it ends; of one that is aside the end waits until it comes back.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use crate::arch::clock;
use crate::sched::cores::{Core, ThisCore};
use crate::sched::place::enqueue;
use crate::sched::process::{Admission, Header, Runnable, Share, ShareRef};
use crate::sync::PreemptGuard;
use crate::time::{self, comparator};

/// Whether a process that has a share, and was taken from a queue, may begin its turn; `None` if it was put aside.
#[cold]
#[inline(never)]
pub(crate) fn admit(core: &ThisCore<'_>, process: Runnable) -> Option<Runnable> {
    let Some(share) = process.share().cloned() else { return Some(process) };
    if process.run_state().is_killed() {
        // It has the slice that one has for its end.
        core.share_end.set(u64::MAX);
        return Some(process);
    }
    let now = clock::now();
    match share.admit(process, now) {
        Admission::Begins(process, left) => {
            let end = now.saturating_add(left);
            core.share_end.set(end);
            comparator::arm_if_earlier(end);
            Some(process)
        }
        Admission::Aside(until) => {
            core.in_turn.end();
            if let Some(until) = until {
                arm(share, until);
            }
            None
        }
    }
}

/// Charges the turn of a process, which ends at `now` and began when the core's turn did.
#[inline(always)]
pub(crate) fn charge(core: &Core, process: &Header, now: u64) {
    if let Some(share) = process.share() {
        share.charge(core.turn_began_at(), now);
    }
}

/// Whether nothing is left for the turn of a process that runs on this core, if it has a share.
#[inline(always)]
pub(crate) fn is_spent(core: &Core, process: &Header) -> bool {
    process.share().is_some() && clock::now() >= core.share_end.get()
}

/// Arms the share's timer. The caller was told to.
fn arm(share: ShareRef, until: u64) {
    let timer = share.timer();
    let data = share.into_pointer().as_ptr().cast_const().cast();
    // SAFETY: the reference goes with the waker, which the timer has until it fires; so both stay where they are. The timer has fired, or was
    // never armed, and nobody else was told to arm it.
    unsafe {
        (*timer.as_ptr()).waker = Some(Waker::new(data, &VTABLE));
        time::arm(timer, until);
    }
}

const VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, forget);

/// # Safety
/// `data` is a live share, as in all of these.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: by contract; the reference that is looked at stays.
    let share = unsafe { ManuallyDrop::new(of(data)) };
    let more = ManuallyDrop::into_inner(share.clone());
    RawWaker::new(more.into_pointer().as_ptr().cast_const().cast(), &VTABLE)
}

/// # Safety
/// One reference is given up by this.
unsafe fn wake(data: *const ()) {
    // SAFETY: by contract.
    let share = unsafe { of(data) };
    let here = PreemptGuard::new();
    let mut aside = share.take_aside();
    while let Some(process) = aside.pop_front() {
        // SAFETY: it was in hand when it was put aside, and is in no list now.
        let process = unsafe { Runnable::new(process) };
        match ThisCore::of(&here) {
            Some(core) => enqueue::requeue(&core, process),
            None => enqueue::woken(process, &here),
        }
    }
}

/// # Safety
/// As above.
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: by contract; one reference more, which `wake` gives up.
    unsafe {
        clone(data);
        wake(data);
    }
}

/// # Safety
/// One reference is given up by this.
unsafe fn forget(data: *const ()) {
    // SAFETY: by contract.
    drop(unsafe { of(data) });
}

/// # Safety
/// One reference is the caller's to give.
unsafe fn of(data: *const ()) -> ShareRef {
    // SAFETY: the wakers of `VTABLE` are made with a pointer to a share.
    unsafe { ShareRef::from_pointer(NonNull::new_unchecked(data.cast_mut().cast::<Share>())) }
}
