//! Which actors of an executor live: a [`Census`] of them, and those who wait until none does.

use alloc::vec::Vec;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use crate::arch::percpu;
use crate::sync::{Census, PreemptGuard, SpinLock};

/// The actors of one executor.
pub(super) struct Live {
    census: Census,
    waiting: SpinLock<Vec<Waker>>,
}

impl Live {
    /// For a machine with so many cores; `None` without memory.
    pub(super) fn new(cores: usize) -> Option<Self> {
        Some(Self { census: Census::new(cores)?, waiting: SpinLock::new(Vec::new()) })
    }

    /// An actor is about to live.
    #[inline(always)]
    pub(super) fn created(&self, _here: &PreemptGuard) {
        self.census.begin(percpu::core_number());
    }

    /// So many have ended.
    pub(super) fn ended(&self, number: u64, _here: &PreemptGuard) {
        if self.census.end(percpu::core_number(), number) {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        let waiting = {
            let mut waiting = self.waiting.lock();
            self.census.forget_waiters();
            core::mem::take(&mut *waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    /// How many live; exact while none is created or ends.
    pub(super) fn count(&self) -> u64 {
        self.census.count()
    }

    /// Waits until none lives.
    pub(super) async fn none(&self) {
        poll_fn(|context| {
            let mut waiting = self.waiting.lock();
            if self.census.wait() {
                return Poll::Ready(());
            }
            if !waiting.iter().any(|waker| waker.will_wake(context.waker())) {
                waiting.push(context.waker().clone());
            }
            Poll::Pending
        })
        .await;
    }
}
