//! Processes that have a share of CPU time: each of their turns is charged, and while nothing is left they are put aside.
//!
//! That is decided at one place, before a turn begins or goes on, whoever woke or preempted the process; so one that was woken, stolen,
//! suspended or is bound to another core is treated alike. A turn that is in progress when nothing is left ends as at a slice's end,
//! whether others wait or not (`run/preempt.rs`, `run/slice.rs`).
//!
//! The first that is put aside arms a timer for the beginning of the next period. When that fires two for each core come back to the
//! queues, those that came first, and look again; and while something is left, one more does for each that waits or ends. So there are as many
//! as the cores can run, and few have come back for nothing, however many there are: thousands that come and go in every
//! period would take more time than the share has. One that ends its turn and wants another goes behind all that are aside, and the first of
//! those comes in its place; one that has come back and finds nothing left is the first next time. So all have their turns in order. While anybody is aside the timer is armed, so nobody depends on those
//! that have come back: they may be bound to a core that others keep busy. All is under the share's lock, and nobody is forgotten. The timer
//! counts as work, so the system has not run out of it. It needs no memory.
//!
//! One that was killed is not put aside, so that it ends; of one that is aside the end waits until it comes back.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use crate::arch::clock;
use crate::sched::cores::{self, Core, ThisCore};
use crate::sched::place::enqueue;
use crate::sched::process::{Admission, Header, Runnable, Share, ShareRef};
use crate::sync::PreemptGuard;
use crate::time::{self, comparator};

/// So many for each core come back when a period begins.
const FOR_EACH_CORE: usize = 2;

/// Whether a process that has a share, and was taken from a queue, may begin its turn; `None` if it was put aside.
#[cold]
#[inline(never)]
pub(crate) fn admit(core: &ThisCore<'_>, process: Runnable) -> Option<Runnable> {
    let Some(share) = process.share().cloned() else { return Some(process) };
    if process.run_state().is_killed() {
        // It has the slice that one has for its end.
        core.share_end.set(u64::MAX);
        // Which may have been killed, too.
        come_back(core, share.take_one());
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

/// Puts one that was aside into a queue again.
fn come_back(core: &ThisCore<'_>, process: Option<NonNull<Header>>) {
    if let Some(process) = process {
        // SAFETY: it was in hand when it was put aside, and is in no list now.
        enqueue::requeue(core, unsafe { Runnable::new(process) });
    }
}

/// One that has ended: another of its share comes back for it.
#[cold]
#[inline(never)]
pub(crate) fn make_way(core: &ThisCore<'_>, process: &Header, now: u64) {
    come_back(core, process.share().and_then(|share| share.take_one_if_left(now)));
}

/// One that has a share waits from `now` on, unless it was woken meanwhile: another comes back for it.
///
/// # Safety
/// Its turn is over, and was the caller's.
#[cold]
#[inline(never)]
pub(crate) unsafe fn end_pending(core: &ThisCore<'_>, process: NonNull<Header>, now: u64) {
    // SAFETY: the scheduler's reference has kept it alive during its turn.
    let header = unsafe { process.as_ref() };
    // When it waits, somebody else may end it.
    let share = header.share().cloned();
    if header.run_state().end_pending() {
        // SAFETY: `end_pending` says that it is to be queued, by its last turn and nobody else.
        enqueue::requeue_at(core, unsafe { Runnable::new(process) }, now);
    } else if let Some(share) = share {
        come_back(core, share.take_one_if_left(now));
    }
}

/// One that has a share has ended its turn at `now`, and wants another: behind those that are aside.
#[cold]
#[inline(never)]
pub(crate) fn take_turns(core: &ThisCore<'_>, process: Runnable, now: u64) {
    let share = process.share().filter(|_| !process.run_state().is_killed()).cloned();
    let exchanged = match share {
        Some(share) => share.exchange(process, now),
        None => Err(process),
    };
    match exchanged {
        Ok(other) => come_back(core, Some(other)),
        Err(process) => enqueue::requeue_at(core, process, now),
    }
}

/// Charges the turn of a process, which ends at `now` and began when the core's turn did. Whether it has a share.
#[inline(always)]
pub(crate) fn charge(core: &Core, process: &Header, now: u64) -> bool {
    let Some(share) = process.share() else { return false };
    share.charge(core.turn_began_at(), now);
    true
}

/// Whether nothing is left for the turn of a process that runs on this core, if it has a share.
#[inline(always)]
pub(crate) fn is_spent(core: &Core, process: &Header) -> bool {
    process.share().is_some() && !comparator::arm_if_ahead(core.share_end.get())
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
    for process in (0..FOR_EACH_CORE * cores::count()).map_while(|_| share.take_one()) {
        match ThisCore::of(&here) {
            Some(core) => come_back(&core, Some(process)),
            // SAFETY: as in `come_back`.
            None => enqueue::woken(unsafe { Runnable::new(process) }, &here),
        }
    }
    if let Some(until) = share.go_on(clock::now()) {
        arm(share, until);
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
