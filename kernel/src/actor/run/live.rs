//! Which actors of an executor live: how many of them there are, and those who wait until none does.

use core::future::poll_fn;

use super::live_count::LiveCount;
use crate::arch::percpu;
use crate::sync::{PreemptGuard, Waiters};

/// The actors of one executor.
pub(crate) struct Live {
    number: LiveCount,
    waiting: Waiters,
}

impl Live {
    /// For a machine with so many cores; `None` without memory.
    pub(super) fn new(cores: usize) -> Option<Self> {
        Some(Self { number: LiveCount::new(cores)?, waiting: Waiters::new() })
    }

    /// An actor is about to live, on this core.
    #[inline(always)]
    pub(crate) fn created(&self, core: usize, _here: &PreemptGuard) {
        self.number.begin(core);
    }

    /// So many have ended.
    pub(super) fn ended(&self, number: u64, _here: &PreemptGuard) {
        if self.number.end(percpu::core_number(), number) {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        self.waiting.tell_all(|| self.number.forget_waiters());
    }

    /// How many live; exact while none is created or ends.
    pub(crate) fn count(&self) -> u64 {
        self.number.count()
    }

    /// Waits until none lives. Actors may be created between the wake-up and the look, so it is looked again.
    pub(crate) async fn none(&self) {
        let mut seat = self.waiting.seat();
        poll_fn(|context| seat.poll(context.waker(), |_told| self.number.wait())).await;
    }
}
