//! A test-and-test-and-set spin lock that disables preemption while it is held.
//!
//! Without that, a holder that is preempted would make every waiter spin for a whole slice. Interrupt
//! handlers take no lock: they set flags that the core loop reads. One does (`sched/run/slice.rs`), where what it has interrupted can
//! hold none, because preemption was enabled.

mod under;

use core::mem::ManuallyDrop;
use core::ops::{Deref, DerefMut};

use super::{PreemptGuard, SpinWait};
use crate::arch::atomic::{AtomicU32, Ordering, UnsafeCell, const_fn};

const FREE: u32 = 0;
const HELD: u32 = 1;

/// Data that one core at a time may touch.
///
/// The state comes first: what begins with a lock is taken without computing where that is. Between it and the data may lie something that
/// takes no lock to read, four bytes of which take no room. Whoever reads it and then locks has fetched the lock's cache line already.
#[repr(C)]
pub struct SpinLock<T, B = ()> {
    state: AtomicU32,
    beside: B,
    data: UnsafeCell<T>,
}

// SAFETY: the lock hands out access to the data to one holder at a time, so sharing the lock moves the
// data between threads but never shares it.
unsafe impl<T: Send, B: Sync> Sync for SpinLock<T, B> {}
// SAFETY: the lock owns its data.
unsafe impl<T: Send, B: Send> Send for SpinLock<T, B> {}

impl<T> SpinLock<T> {
    const_fn! {
        /// A free lock around `data`.
        pub fn new(data: T) -> Self {
            Self { state: AtomicU32::new(FREE), beside: (), data: UnsafeCell::new(data) }
        }
    }
}

impl<T, B> SpinLock<T, B> {
    /// How many bytes behind its beginning the state lies, what is beside it, and the data.
    #[cfg(target_os = "none")]
    pub(crate) const STATE_AT: usize = core::mem::offset_of!(Self, state);
    #[cfg(target_os = "none")]
    pub(crate) const BESIDE_AT: usize = core::mem::offset_of!(Self, beside);
    #[cfg(target_os = "none")]
    pub(crate) const DATA_AT: usize = core::mem::offset_of!(Self, data);

    /// A free lock around `data`, with this beside it.
    pub(crate) fn with_beside(beside: B, data: T) -> Self {
        Self { state: AtomicU32::new(FREE), beside, data: UnsafeCell::new(data) }
    }

    /// What lies beside it.
    #[inline(always)]
    pub(crate) fn beside(&self) -> &B {
        &self.beside
    }

    /// Waits for the lock and takes it.
    #[inline(always)]
    pub fn lock(&self) -> SpinGuard<'_, T, B> {
        self.lock_here(PreemptGuard::new())
    }

    /// As [`Self::lock`], for a caller who has disabled preemption already: the guard goes into the lock's.
    #[inline(always)]
    pub(crate) fn lock_here(&self, preempt: PreemptGuard) -> SpinGuard<'_, T, B> {
        if !take(&self.state) {
            wait(&self.state);
        }
        SpinGuard { lock: self, preempt }
    }

    /// Takes the lock if it is free now.
    #[inline(always)]
    pub fn try_lock(&self) -> Option<SpinGuard<'_, T, B>> {
        let preempt = PreemptGuard::new();
        // Made only on success: dropping a guard frees the lock, whoever holds it.
        take(&self.state).then(|| SpinGuard { lock: self, preempt })
    }
}

#[inline(always)]
fn take(state: &AtomicU32) -> bool {
    // Acquire: pairs with the release in the guard's drop, so the holder sees what the last one
    // wrote. Relaxed on failure: nothing was learned.
    state.compare_exchange(FREE, HELD, Ordering::Acquire, Ordering::Relaxed).is_ok()
}

/// Once for all locks, whatever they guard.
#[cold]
#[inline(never)]
fn wait(state: &AtomicU32) {
    let mut looks = SpinWait::default();
    loop {
        // Relaxed: only a hint for when to try again; `take` orders.
        while state.load(Ordering::Relaxed) == HELD {
            looks.pause();
        }
        if take(state) {
            return;
        }
    }
}

/// The lock's data, until dropped.
pub struct SpinGuard<'a, T, B = ()> {
    lock: &'a SpinLock<T, B>,
    // Dropped after the body of `drop` below has freed the lock: preemption stays off until then.
    preempt: PreemptGuard,
}

impl<T, B> SpinGuard<'_, T, B> {
    /// Preemption is disabled for as long as the lock is held.
    #[inline(always)]
    pub(crate) fn preempt(&self) -> &PreemptGuard {
        &self.preempt
    }

    /// Gives the lock back; preemption stays disabled.
    #[inline(always)]
    pub(crate) fn unlock(self) -> PreemptGuard {
        let this = ManuallyDrop::new(self);
        // Release: as in `drop`.
        this.lock.state.store(FREE, Ordering::Release);
        // SAFETY: moved out once, and `this` is not dropped.
        unsafe { core::ptr::read(&raw const this.preempt) }
    }

    /// The data, and the guard.
    #[inline(always)]
    pub(crate) fn parts(&mut self) -> (&mut T, &PreemptGuard) {
        // SAFETY: as for `deref_mut`.
        (self.lock.data.with_mut(|data| unsafe { &mut *data }), &self.preempt)
    }
}

impl<T, B> Deref for SpinGuard<'_, T, B> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: the guard exists, so this core holds the lock and nobody else has a reference.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<T, B> DerefMut for SpinGuard<'_, T, B> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `deref`, and the guard is borrowed exclusively.
        self.lock.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T, B> Drop for SpinGuard<'_, T, B> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: pairs with the acquire in `take`.
        self.lock.state.store(FREE, Ordering::Release);
    }
}
