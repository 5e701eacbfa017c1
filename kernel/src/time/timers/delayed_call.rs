//! Delayed calls: a value that is handed to a function when its time has come, unless it is taken back; once, or again and
//! again.
//!
//! A delayed call is a timer in the queue of the core that set it, whose waker is not a process's but the call
//! itself. Two references keep its memory: the handle's and the waker's. Whoever makes `PENDING` something else has the value:
//!
//! ```text
//!              wake: the queue fires
//! PENDING ──────────────────────────────► TAKEN       the function has the value
//!   │ ▲      again: it gives the value back │ │
//!   │ └─────────────────────────────────────┘ │
//!   │        cancel: the handle's owner       │
//!   └────────────────► OVER ◄─────────────────┘
//!   who has the value       while the function has it, which keeps it; or: it will not give it back
//! ```
//!
//! All are single exchanges (`call_state.rs`), so of a firing and a cancelling at the same time one wins, and the other finds nothing. A call
//! that the function sets *again* is in the same queue as before, because it fires on the core whose queue that is. Nobody but the
//! function touches the timer while it has the value. Dropping the handle lets the call go on. The handle knows what can be
//! taken back, and no more of the value.
//!
//! The function is called by a core loop, with preemption disabled and no lock held: it must be short, and is
//! the kernel's own. What takes longer it leaves to others, in the call's memory: see `sched::spawn::later`, and the
//! public functions that are built on it, such as `Addr::send_after`.

use alloc::boxed::Box;
use core::cell::{Cell, UnsafeCell};
use core::mem::{ManuallyDrop, MaybeUninit};
use core::ptr::NonNull;
use core::task::{RawWaker, RawWakerVTable, Waker};

use super::call_state::CallState;
use super::timer::Timer;
use super::{ended, lead, per_core};
use crate::arch::atomic::{AtomicU32, Ordering};
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

    fn is_over(&self) -> bool;

    fn missed(&self) -> u32;

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
    /// While pending in a queue, under whose lock it is used, or about to fire. Whoever has made that something else has it
    /// alone, a canceller after [`per_core::cancel`].
    timer: UnsafeCell<Timer>,
    /// What it was armed for, and how much earlier it fires, in clock ticks. As the timer.
    moment: Cell<u64>,
    lead: u64,
    references: ReferenceCount,
    state: CallState,
    /// Moments that were left out.
    missed: AtomicU32,
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

    /// Notes moments that were left out.
    pub(crate) fn note_missed(&self, moments: u64) {
        if moments != 0 {
            let missed = &self.block().missed;
            // Relaxed, as every access: a statistic, which whoever has the value writes.
            let sum = u64::from(missed.load(Ordering::Relaxed)).saturating_add(moments);
            missed.store(u32::try_from(sum).unwrap_or(u32::MAX), Ordering::Relaxed);
        }
    }

    /// The moment that it was set for, in clock ticks: it may have fired a little before. For the function, before it sets it again.
    pub(crate) fn moment(&self) -> u64 {
        self.block().moment.get()
    }

    /// It will not be set again.
    pub(crate) fn end(&self) {
        self.block().state.end();
    }

    /// Sets the call once more, with this value, for `moment`. Both come back if it was given up meanwhile.
    ///
    /// # Safety
    /// Called by the function, before it returns, with what it got.
    pub(crate) unsafe fn again(self, value: T, moment: Instant) -> Option<(T, Self)> {
        self.put_back(value);
        let block = ManuallyDrop::new(self).0;
        // SAFETY: the reference of what was given up here is the new waker's, so the block stays. The state is not `PENDING`, so
        // nobody else touches timer and value; the timer has fired. If the call is not set, the waker and its reference come back.
        unsafe {
            let timer = block.as_ref().timer.get();
            (*timer).waker = Some(Block::<R, T>::waker(block));
            let this = block.as_ref();
            this.moment.set(moment.ticks());
            let core =
                per_core::arm(NonNull::new_unchecked(timer), lead::armed_for(moment.ticks(), this.lead));
            if block.as_ref().state.set_again() {
                return None;
            }
            per_core::cancel(NonNull::new_unchecked(timer), core);
            let waker = (*timer).waker.take().map(ManuallyDrop::new);
            debug_assert!(waker.is_some(), "a timer has fired while its core was busy setting it");
            let held = Self(block);
            Some((held.take_back(), held))
        }
    }

    fn block(&self) -> &Block<R, T> {
        // SAFETY: its own reference keeps it.
        unsafe { self.0.as_ref() }
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
        if self.block().references.release() {
            // SAFETY: the last reference is gone, so the timer is in no queue, and nobody knows the block.
            unsafe { ended::free_later(self.0.as_ptr().cast(), Block::<R, T>::free) };
        }
    }
}

impl<R, T> Block<R, T> {
    const VTABLE: RawWakerVTable =
        RawWakerVTable::new(Self::clone, Self::wake, Self::wake_by_ref, Self::drop_reference);

    /// Takes the value, if nobody has taken it before.
    fn take(&self) -> Option<T> {
        // SAFETY: the value is there while it is pending, and whoever ends that takes it.
        self.state.take().then(|| unsafe { (*self.value.get()).assume_init_read() })
    }

    /// A waker that calls the function.
    ///
    /// # Safety
    /// One reference to the block, which is alive, is the waker's from now on.
    unsafe fn waker(this: NonNull<Self>) -> Waker {
        // SAFETY: the functions of `VTABLE` count references; one is this waker's, by contract.
        unsafe { Waker::new(this.as_ptr().cast_const().cast(), &Self::VTABLE) }
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
            // SAFETY: the last reference is gone, so the timer is in no queue.
            unsafe { Self::free(data.cast_mut()) };
        }
    }

    /// # Safety
    /// `data` is a block that nobody uses any more.
    unsafe fn free(data: *mut ()) {
        // SAFETY: by contract; the memory came from a box.
        drop(unsafe { Box::from_raw(data.cast::<Self>()) });
    }
}

impl<R, T> Drop for Block<R, T> {
    fn drop(&mut self) {
        drop(self.take());
    }
}

impl<R, T: TakeBack> Pending<T::Taken> for Block<R, T> {
    fn is_pending(&self) -> bool {
        self.state.is_pending()
    }

    fn is_over(&self) -> bool {
        self.state.is_over()
    }

    fn missed(&self) -> u32 {
        // Relaxed: a statistic.
        self.missed.load(Ordering::Relaxed)
    }

    unsafe fn cancel(&self, core: usize) -> Option<T::Taken> {
        if !self.state.give_up() {
            return None;
        }
        // SAFETY: it was pending, and whoever ends that takes the value.
        let value = unsafe { (*self.value.get()).assume_init_read() };
        let timer = self.timer.get();
        // SAFETY: by contract. Afterwards it is in no queue and, as the queue's lock was taken after it had left, nobody
        // else touches it, so what is left in it is this caller's.
        let waker = unsafe {
            per_core::cancel(NonNull::new_unchecked(timer), core);
            (*timer).waker.take()
        };
        // The waker's reference, unless the queue has taken it out to fire.
        drop(waker);
        value.taken_back()
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
    /// Hands `value` to `fire` at `moment`, at least, or by `lead` ticks earlier: then nobody sees what the function does before the moment. What is
    /// urgent comes before what is not. It counts as work until then.
    ///
    /// # Errors
    /// The value comes back when there is no memory.
    pub(crate) fn set<R: 'static, T: TakeBack<Taken = V>>(
        moment: Instant,
        (is_urgent, lead): (bool, u64),
        room: R,
        value: T,
        fire: fn(T, Held<R, T>),
    ) -> Result<Self, (OutOfMemory, T)> {
        let mut timer = Timer::new(false);
        timer.urgent = is_urgent;
        let block = Block {
            room,
            timer: UnsafeCell::new(timer),
            moment: Cell::new(moment.ticks()),
            lead,
            references: ReferenceCount::new(2),
            state: CallState::pending(),
            missed: AtomicU32::new(0),
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
        // SAFETY: nobody else knows the block yet; one of its two references is the waker's. It stays where it is: that keeps it
        // until the timer has fired, and the handle's until `cancel` has taken it from the queue.
        let core = unsafe {
            let timer = block.as_ref().timer.get();
            (*timer).waker = Some(Block::<R, T>::waker(block));
            per_core::arm(NonNull::new_unchecked(timer), lead::armed_for(moment.ticks(), lead))
        };
        Ok(Self { block, core })
    }

    /// Whether the value still waits; it may be taken at any moment.
    pub(crate) fn is_pending(&self) -> bool {
        self.block().is_pending()
    }

    /// Whether it will not be set again; for one that is set again and again.
    pub(crate) fn is_over(&self) -> bool {
        self.block().is_over()
    }

    /// How many moments were left out so far, at least.
    pub(crate) fn missed(&self) -> u32 {
        self.block().missed()
    }

    /// Takes the value back, unless it was handed on already. It is not set again.
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
