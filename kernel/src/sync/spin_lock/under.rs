//! Taking a spin lock where preemption is disabled for longer than it is held: shorter by what a guard takes.

use core::marker::PhantomData;
use core::ops::{Deref, DerefMut};

use super::{FREE, SpinLock};
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;

impl<T> SpinLock<T> {
    /// As [`Self::lock`], under a guard that the caller keeps for longer: shorter by what a guard takes.
    #[inline(always)]
    pub(crate) fn lock_under<'a>(&'a self, _here: &'a PreemptGuard) -> UnderGuard<'a, T> {
        if !super::take(&self.state) {
            super::wait(&self.state);
        }
        UnderGuard { lock: self, _not_send: PhantomData }
    }
}

/// The lock's data, until dropped, under somebody's guard.
pub(crate) struct UnderGuard<'a, T> {
    lock: &'a SpinLock<T>,
    _not_send: PhantomData<*mut ()>,
}

impl<T> Deref for UnderGuard<'_, T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: as for `SpinGuard`.
        self.lock.data.with(|data| unsafe { &*data })
    }
}

impl<T> DerefMut for UnderGuard<'_, T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as for `SpinGuard`.
        self.lock.data.with_mut(|data| unsafe { &mut *data })
    }
}

impl<T> Drop for UnderGuard<'_, T> {
    #[inline(always)]
    fn drop(&mut self) {
        // Release: as for `SpinGuard`.
        self.lock.state.store(FREE, Ordering::Release);
    }
}
