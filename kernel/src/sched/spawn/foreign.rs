//! Wakers that are not the scheduler's: what an application makes to be woken in its own way.
//!
//! Events come everywhere: in a core's loop, in a crash, in the middle of somebody else's turn. There such a waker must
//! not be called or dropped, because it may do anything. So the kernel keeps a waker of its own in its place, with the
//! foreign one in an [`Errand`]. To be woken or dropped starts the errand, once, and its process wakes or drops the
//! foreign waker. Cloning happens only where the application polls.

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::mem::ManuallyDrop;
use core::ptr::{self, NonNull};
use core::task::{RawWaker, RawWakerVTable, Waker};

use crate::arch::atomic::{AtomicU8, Ordering};
use crate::mem;
use crate::sched::place::waker;
use crate::sched::process::{ProcessRef, Step};
use crate::sched::spawn::errand::Errand;
use crate::sync::{PreemptGuard, ReferenceCount};

/// The errand has not been started yet.
const KEPT: u8 = 0;
/// It was started, to wake.
const WOKEN: u8 = 1;
/// It was started, to drop: nobody is left who could wake.
const DROPPED: u8 = 2;

#[repr(C)]
struct Foreign {
    errand: Errand,
    /// The kernel's wakers; each has a reference to the process, too.
    wakers: ReferenceCount,
    /// One of the three above.
    state: AtomicU8,
    /// Until the errand is run.
    waker: UnsafeCell<ManuallyDrop<Waker>>,
}

static VTABLE: RawWakerVTable = RawWakerVTable::new(clone, wake, wake_by_ref, drop_waker);

/// What the kernel may keep to wake `waker`, and call anywhere; `None` without memory. Called where the application polls.
pub(crate) fn keep(waker: &Waker) -> Option<Waker> {
    if waker::is_own(waker) || waker.will_wake(Waker::noop()) {
        return Some(waker.clone());
    }
    let mut place = mem::kernel_box_with(|| Foreign {
        errand: Errand::new(run, free),
        wakers: ReferenceCount::new(1),
        state: AtomicU8::new(KEPT),
        waker: UnsafeCell::new(ManuallyDrop::new(Waker::noop().clone())),
    })
    .ok()?;
    // Cloned when nothing can fail any more but the clone itself.
    *place.waker.get_mut() = ManuallyDrop::new(waker.clone());
    let foreign = NonNull::from(Box::leak(place));
    // SAFETY: just made; the reference is the waker's.
    unsafe {
        let _ = ProcessRef::count(Errand::header(foreign.cast())).into_counted();
        Some(Waker::new(foreign.as_ptr().cast_const().cast(), &VTABLE))
    }
}

/// Whether `kept` stands for `waker`.
pub(crate) fn is_for(kept: &Waker, waker: &Waker) -> bool {
    if !ptr::eq(kept.vtable(), &VTABLE) {
        return kept.will_wake(waker);
    }
    // SAFETY: such a waker was made in `keep`. Only the caller has it, so it was neither woken nor dropped.
    let own = unsafe { &*(*kept.data().cast::<Foreign>()).waker.get() };
    own.will_wake(waker)
}

/// Starts the errand, unless it was.
///
/// # Safety
/// The caller has a reference.
unsafe fn start(data: *const (), why: u8) {
    // SAFETY: the caller has a reference.
    let foreign = unsafe { &*data.cast::<Foreign>() };
    // Whoever is killed between the two would have started nothing.
    let _whole = PreemptGuard::new();
    // Release: pairs with the acquire in `run`, which sees what the waker's caller wrote. The exchange makes one starter.
    if foreign.state.compare_exchange(KEPT, why, Ordering::Release, Ordering::Relaxed).is_ok() {
        // SAFETY: once, by the exchange; it is boxed until `free`.
        unsafe { Errand::start(NonNull::new_unchecked(data.cast_mut().cast())) };
    }
}

/// # Safety
/// The contract of `RawWakerVTable`: `data` is that of a live waker.
unsafe fn clone(data: *const ()) -> RawWaker {
    // SAFETY: the waker is alive, so it keeps its reference. Relaxed: made from a waker that exists.
    unsafe {
        (*data.cast::<Foreign>()).wakers.add();
        let _ = ProcessRef::count(NonNull::new_unchecked(data.cast_mut().cast())).into_counted();
    }
    RawWaker::new(data, &VTABLE)
}

/// # Safety
/// The contract of `RawWakerVTable`: consumes the waker.
unsafe fn wake(data: *const ()) {
    // SAFETY: by contract.
    unsafe {
        wake_by_ref(data);
        drop_waker(data);
    }
}

/// # Safety
/// The contract of `RawWakerVTable`: `data` is that of a live waker.
unsafe fn wake_by_ref(data: *const ()) {
    // SAFETY: the waker is alive, so it keeps its reference.
    unsafe { start(data, WOKEN) };
}

/// # Safety
/// The contract of `RawWakerVTable`: consumes the waker.
unsafe fn drop_waker(data: *const ()) {
    // SAFETY: by contract; the waker's own reference is given up last.
    unsafe {
        if (*data.cast::<Foreign>()).wakers.release() {
            start(data, DROPPED);
        }
        drop(ProcessRef::from_counted(NonNull::new_unchecked(data.cast_mut().cast())));
    }
}

/// # Safety
/// The errand of a [`Foreign`], in its process, once.
unsafe fn run(errand: NonNull<Errand>) -> Step {
    // SAFETY: by contract; nobody else touches the waker any more.
    let (state, waker) = unsafe {
        let foreign = errand.cast::<Foreign>();
        // Acquire: pairs with the release in `start`.
        let state = foreign.as_ref().state.load(Ordering::Acquire);
        (state, ManuallyDrop::take(&mut *foreign.as_ref().waker.get()))
    };
    if state == WOKEN {
        waker.wake();
    }
    Step::Done
}

/// # Safety
/// The errand of a [`Foreign`], which is over, and nobody has a reference.
unsafe fn free(errand: NonNull<Errand>) {
    // SAFETY: boxed in `keep`; the foreign waker was taken out, or lost.
    drop(unsafe { Box::from_raw(errand.cast::<Foreign>().as_ptr()) });
}
