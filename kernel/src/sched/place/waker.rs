//! Wakers: a reference to a process in the form that futures know.

use core::mem::ManuallyDrop;
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use crate::mem::stack::StackBlock;
use crate::sched::cores::ThisCore;
use crate::sched::place::enqueue;
use crate::sched::process::{Header, Priority, ProcessRef};
use crate::time::OwnedTimers;

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_reference);

/// Whether a waker is one of these.
#[inline]
pub(crate) fn is_own(waker: &Waker) -> bool {
    core::ptr::eq(waker.vtable(), &VTABLE)
}

/// A waker for a process, without counting a reference for it.
///
/// # Safety
/// The process outlives the waker, and the waker itself is never dropped (its clones may be).
#[inline]
pub(crate) unsafe fn borrowed(header: NonNull<Header>) -> Waker {
    // SAFETY: the functions of `VTABLE` implement the contract of `RawWaker` by counting references.
    unsafe { Waker::from_raw(RawWaker::new(header.as_ptr().cast_const().cast(), &VTABLE)) }
}

/// As `wake_by_ref`, for a future that gives up its turn and has more to do. If the waker is that of the process whose turn
/// this is, nobody but the end of the turn needs to know, and a note on the stack tells it. A waker of another's, such as one
/// that a collection of futures makes for each of them, is woken.
#[inline]
pub(crate) fn wake_again(waker: &Waker) {
    if is_own(waker) && core::ptr::eq(waker.data(), StackBlock::current().process()) {
        StackBlock::current().note_yield(waker.data().cast_mut());
    } else {
        waker.wake_by_ref();
    }
}

/// As `wake`, for the core's loop.
#[inline(always)]
pub(crate) fn wake_in_loop(core: &ThisCore<'_>, waker: Waker) {
    if !is_own(&waker) {
        return waker.wake();
    }
    // SAFETY: the waker is one of these, and its own reference is passed on and dropped here.
    let process = unsafe { ProcessRef::from_counted(header(ManuallyDrop::new(waker).data())) };
    enqueue::woken_by_loop(core, &process);
}

/// The process that `waker` wakes, with a reference of its own; `None` if the waker is not the scheduler's.
pub(crate) fn process_of(waker: &Waker) -> Option<ProcessRef> {
    // SAFETY: the waker is one of these, so it keeps a live process.
    is_own(waker).then(|| unsafe { ProcessRef::count(header(waker.data())) })
}

/// Whether the process that `waker` wakes has crashed; not, if the waker is not the scheduler's.
pub(crate) fn is_of_crashed(waker: &Waker) -> bool {
    // SAFETY: the waker is one of these, so it keeps a live process.
    is_own(waker) && unsafe { header(waker.data()).as_ref() }.run_state().has_crashed()
}

/// Whether the process that `waker` wakes is urgent; not, if the waker is not the scheduler's.
pub(crate) fn is_of_urgent(waker: &Waker) -> bool {
    // SAFETY: the waker is one of these, so it keeps a live process.
    is_own(waker) && unsafe { header(waker.data()).as_ref() }.priority().is_urgent()
}

/// The list of the timers that would wake the process that `waker` wakes; `None` if the waker is not the scheduler's.
pub(crate) fn timers_of(waker: &Waker) -> Option<&OwnedTimers> {
    // SAFETY: the waker is one of these, so it keeps a live process.
    is_own(waker).then(|| unsafe { header(waker.data()).as_ref() }.timers())
}

/// How urgent the process is that `waker` wakes. If the waker is not the scheduler's, nobody knows: then as urgent as the
/// process whose turn the caller is part of, which most likely waits by way of it.
pub(crate) fn priority_of(waker: &Waker) -> Priority {
    let process = if is_own(waker) { waker.data() } else { StackBlock::current().process().cast_const() };
    // SAFETY: the waker keeps its process alive, and the scheduler one whose turn this is.
    NonNull::new(process.cast_mut().cast::<Header>())
        .map_or(Priority::Normal, |process| unsafe { process.as_ref() }.priority())
}

/// # Safety
/// `data` came from [`borrowed`], so it is a live process.
unsafe fn header(data: *const ()) -> NonNull<Header> {
    // SAFETY: `borrowed` made it from a `NonNull`.
    unsafe { NonNull::new_unchecked(data.cast_mut().cast()) }
}

/// # Safety
/// The contract of `RawWakerVTable`: `data` is that of a live waker.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker that is cloned keeps the process alive.
    let reference = unsafe { ProcessRef::count(header(data)) };
    RawWaker::new(reference.into_counted().as_ptr().cast_const().cast(), &VTABLE)
}

/// # Safety
/// The contract of `RawWakerVTable`: consumes the waker's reference.
unsafe fn wake(data: *const ()) {
    // SAFETY: the waker's own reference is passed on and dropped here.
    unsafe { ProcessRef::from_counted(header(data)) }.wake();
}

/// Out of line, because a turn that yields ([`wake_again`]) almost never comes here, and needs few registers without.
///
/// # Safety
/// The contract of `RawWakerVTable`: the waker keeps its reference.
#[inline(never)]
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker keeps its own reference, so this one is not dropped.
    let reference = core::mem::ManuallyDrop::new(unsafe { ProcessRef::from_counted(header(data)) });
    reference.wake();
}

/// # Safety
/// The contract of `RawWakerVTable`: consumes the waker's reference.
unsafe fn drop_reference(data: *const ()) {
    // SAFETY: the waker's own reference, given up here.
    drop(unsafe { ProcessRef::from_counted(header(data)) });
}
