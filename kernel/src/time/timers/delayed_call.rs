//! Delayed calls: a value that is handed to a function when its time has come, unless it is taken back.
//!
//! A delayed call is a timer in the queue of the core that set it, whose waker is not a process's but the call
//! itself. Two references keep its memory: the handle's and the waker's. The value is taken exactly once:
//!
//! ```text
//!            wake: the queue fires            handed to the function
//! PENDING ──────────────────────────► TAKEN
//!            cancel: the handle's owner       handed to that one
//! ```
//!
//! Both make the transition by one exchange, so of a firing and a cancelling at the same time one wins, and
//! the other finds nothing. Dropping the handle lets the call go on. The handle knows what can be taken back, and no more of
//! the value.
//!
//! The function is called by a core loop, with preemption disabled and no lock held: it must be short, and is
//! the kernel's own. What takes longer it leaves to others, in the call's memory: see `sched::spawn::later`, and the
//! public functions that are built on it, such as `Addr::send_after`.

use alloc::boxed::Box;
use core::cell::UnsafeCell;
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};
use core::time::Duration;

use super::per_core;
use super::timer::Timer;
use crate::arch::atomic::{AtomicBool, Ordering};
use crate::mem::{self, OutOfMemory};
use crate::sync::ReferenceCount;
use crate::time::instant::Instant;

/// A value that may be taken back before its time has come.
pub(crate) trait TakeBack: Send + 'static {
    /// What comes back of it.
    type Taken;

    /// What comes back; `None` if there is nothing.
    fn taken_back(self) -> Option<Self::Taken>;
}

/// A block as the handle knows it.
trait Pending<V> {
    fn is_pending(&self) -> bool;

    /// Takes the timer out of the queue, and the value back, unless it was handed on already.
    ///
    /// # Safety
    /// The timer was armed on `core`, and this is called once.
    unsafe fn cancel(&self, core: usize) -> Option<V>;

    fn references(&self) -> &ReferenceCount;
}

#[repr(C)]
struct Block<R, T> {
    /// Whatever the function needs to go on elsewhere. First, so that it is found by its address.
    room: R,
    /// In a queue, under whose lock it is used. After [`per_core::cancel`] it belongs to the canceller alone.
    timer: UnsafeCell<Timer>,
    references: ReferenceCount,
    /// The value is still there.
    pending: AtomicBool,
    value: UnsafeCell<MaybeUninit<T>>,
    fire: fn(T, Held<R, T>),
}

/// A reference to the memory of a delayed call that has fired, for the function to go on with.
pub(crate) struct Held<R, T>(NonNull<Block<R, T>>);

impl<R, T> Held<R, T> {
    /// Keeps the value where it was, for [`Self::take_back`].
    pub(crate) fn put_back(&self, value: T) {
        // SAFETY: the call has fired, so nobody else looks at the place; the value was moved out.
        unsafe { (*self.0.as_ref().value.get()).write(value) };
    }

    /// Takes what was put back.
    ///
    /// # Safety
    /// A value was put back, and is not taken again.
    pub(crate) unsafe fn take_back(&self) -> T {
        // SAFETY: the caller promised that a value was put back and is taken once.
        unsafe { (*self.0.as_ref().value.get()).assume_init_read() }
    }

    /// Gives up this, and keeps the reference for [`Self::from_room`].
    pub(crate) fn into_room(self) -> NonNull<R> {
        ManuallyDrop::new(self).0.cast()
    }

    /// # Safety
    /// `room` came from [`Self::into_room`], and at most one of these at a time is dropped, once.
    pub(crate) unsafe fn from_room(room: NonNull<R>) -> Self {
        Self(room.cast())
    }
}

impl<R, T> Drop for Held<R, T> {
    fn drop(&mut self) {
        // SAFETY: its own reference.
        unsafe { Block::<R, T>::drop_reference(self.0.as_ptr().cast_const().cast()) };
    }
}

impl<R, T> Block<R, T> {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop_reference);

    /// Takes the value, if nobody has taken it before.
    fn take(&self) -> Option<T> {
        // Acquire: the value was written before the call was set. Release: pairs with the acquire of whoever
        // frees the block. The exchange makes one taker of several.
        // SAFETY: the value is there until `pending` is cleared, and whoever cleared it takes it, once.
        self.pending.swap(false, Ordering::AcqRel).then(|| unsafe { (*self.value.get()).assume_init_read() })
    }

    /// # Safety
    /// The contract of `RawWakerVTable`: `data` is a live block.
    unsafe fn clone(data: *const ()) -> RawWaker {
        // SAFETY: the caller promised a live block.
        unsafe { &*data.cast::<Self>() }.references.add();
        RawWaker::new(data, &Self::VTABLE)
    }

    /// # Safety
    /// The contract of `RawWakerVTable`: consumes the waker's reference.
    unsafe fn wake(data: *const ()) {
        // SAFETY: by contract; the waker's reference is handed on.
        let held = unsafe { Held::<R, T>(NonNull::new_unchecked(data.cast_mut().cast())) };
        // SAFETY: the reference keeps it.
        let this = unsafe { held.0.as_ref() };
        if let Some(value) = this.take() {
            (this.fire)(value, held);
        }
    }

    /// # Safety
    /// The contract of `RawWakerVTable`: `data` is a live block.
    unsafe fn wake_by_ref(data: *const ()) {
        // SAFETY: by contract; one reference more, which `wake` takes.
        unsafe {
            Self::clone(data);
            Self::wake(data);
        }
    }

    /// # Safety
    /// Consumes one reference to a live block.
    unsafe fn drop_reference(data: *const ()) {
        // SAFETY: the reference that is given up here keeps the block until then.
        let this = unsafe { &*data.cast::<Self>() };
        if this.references.release() {
            // SAFETY: the last reference is gone, so the timer is in no queue; the memory came from a box.
            drop(unsafe { Box::from_raw(data.cast::<Self>().cast_mut()) });
        }
    }
}

impl<R, T> Drop for Block<R, T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<R, T: TakeBack> Pending<T::Taken> for Block<R, T> {
    fn is_pending(&self) -> bool {
        // Relaxed: a hint.
        self.pending.load(Ordering::Relaxed)
    }

    unsafe fn cancel(&self, core: usize) -> Option<T::Taken> {
        let value = self.take();
        let timer = self.timer.get();
        // SAFETY: by contract. Afterwards it is in no queue and, as the queue's lock was taken after it had left, nobody
        // else touches it, so what is left in it is this caller's.
        let waker = unsafe {
            per_core::cancel(NonNull::new_unchecked(timer), core);
            (*timer).waker.take()
        };
        // The waker's reference, unless the queue has taken it out to fire.
        drop(waker);
        value.and_then(T::taken_back)
    }

    fn references(&self) -> &ReferenceCount {
        &self.references
    }
}

/// The right to take back what waits for its moment.
pub(crate) struct DelayedCall<V> {
    block: NonNull<dyn Pending<V>>,
    /// The core in whose queue the timer is.
    core: usize,
}

// SAFETY: the value can change cores (`TakeBack`), and does so whole, as does what is made of it here; the timer is used under
// its queue's lock; the room is the function's, which takes care of it.
unsafe impl<V: Send> Send for DelayedCall<V> {}
// SAFETY: a shared call can only be asked whether it is pending.
unsafe impl<V: Send> Sync for DelayedCall<V> {}

impl<V> DelayedCall<V> {
    /// Hands `value` to `fire` after `delay`, at least. It counts as work until then.
    ///
    /// # Errors
    /// The value comes back when there is no memory.
    pub(crate) fn set<R: 'static, T: TakeBack<Taken = V>>(
        delay: Duration,
        room: R,
        value: T,
        fire: fn(T, Held<R, T>),
    ) -> Result<Self, (OutOfMemory, T)> {
        let block = Block {
            room,
            timer: UnsafeCell::new(Timer::new(false)),
            references: ReferenceCount::new(2),
            pending: AtomicBool::new(true),
            value: UnsafeCell::new(MaybeUninit::new(value)),
            fire,
        };
        let block = match mem::try_box(block) {
            Ok(block) => NonNull::from(Box::leak(block)),
            Err((error, block)) => match block.take() {
                Some(value) => return Err((error, value)),
                None => unreachable!("somebody took the value from a block that nobody knows"),
            },
        };
        let deadline = (Instant::now() + delay).ticks();
        // SAFETY: the functions of `VTABLE` count references; one of the two is this waker's.
        let waker = unsafe { Waker::new(block.as_ptr().cast_const().cast(), &Block::<R, T>::VTABLE) };
        // SAFETY: nobody else knows the block yet. It stays where it is: the waker's reference keeps it until
        // the timer has fired, and the handle's until `cancel` has taken it from the queue.
        let core = unsafe {
            let timer = block.as_ref().timer.get();
            (*timer).waker = Some(waker);
            per_core::arm(NonNull::new_unchecked(timer), deadline)
        };
        Ok(Self { block, core })
    }

    /// Whether the value still waits; it may be taken at any moment.
    pub(crate) fn is_pending(&self) -> bool {
        self.block().is_pending()
    }

    /// Takes the value back, unless it was handed on already.
    pub(crate) fn cancel(self) -> Option<V> {
        // SAFETY: it was armed on that core, and this handle is used up.
        unsafe { self.block().cancel(self.core) }
    }

    fn block(&self) -> &dyn Pending<V> {
        // SAFETY: the handle's reference keeps it.
        unsafe { self.block.as_ref() }
    }
}

impl<V> Drop for DelayedCall<V> {
    fn drop(&mut self) {
        if self.block().references().release() {
            // SAFETY: the last reference is gone, so the timer is in no queue; the memory came from a box of this type.
            drop(unsafe { Box::from_raw(self.block.as_ptr()) });
        }
    }
}
