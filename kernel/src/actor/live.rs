//! Counting the actors that live, and waiting until none does.
//!
//! Each core counts what was created and what ended there, in monotone counters of its own. Whoever wants to
//! know whether none is left adds up the ends *first* and the creations afterwards. If the two are equal,
//! then at the moment between the two additions as many had ended as had been created: creations counted by
//! then were no more than were added up later, and ends no fewer than were added up before. So zero is never
//! seen while an actor lives. It may of course be seen before a creator outside has created its first.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::future::poll_fn;
use core::task::{Poll, Waker};

use crate::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::arch::{barrier, percpu};
use crate::sync::{PreemptGuard, SpinLock};

#[repr(align(64))]
struct OneCore {
    created: AtomicU64,
    ended: AtomicU64,
}

/// The actors of one executor.
pub(super) struct Live {
    cores: Box<[OneCore]>,
    somebody_waits: AtomicBool,
    waiting: SpinLock<Vec<Waker>>,
}

fn add(counter: &AtomicU64, number: u64) {
    // Relaxed: this core is the only one that writes. Release: pairs with the acquire in `sum`: whoever sees
    // an end sees the creations that were counted before it.
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Release);
}

impl Live {
    /// For a machine with so many cores; `None` without memory.
    pub(super) fn new(cores: usize) -> Option<Self> {
        let mut list = Vec::new();
        list.try_reserve_exact(cores).ok()?;
        list.extend((0..cores).map(|_| OneCore { created: AtomicU64::new(0), ended: AtomicU64::new(0) }));
        Some(Self {
            cores: list.into_boxed_slice(),
            somebody_waits: AtomicBool::new(false),
            waiting: SpinLock::new(Vec::new()),
        })
    }

    fn here(&self, _here: &PreemptGuard) -> &OneCore {
        &self.cores[percpu::core_number() % self.cores.len()]
    }

    /// An actor is about to live.
    #[inline(always)]
    pub(super) fn created(&self, here: &PreemptGuard) {
        add(&self.here(here).created, 1);
    }

    /// So many have ended.
    pub(super) fn ended(&self, number: u64, here: &PreemptGuard) {
        add(&self.here(here).ended, number);
        // Pairs with the barrier in `none`: either the waiter sees the end, or this sees the waiter.
        barrier::full();
        if self.somebody_waits.load(Ordering::Relaxed) && self.is_none() {
            self.wake_all();
        }
    }

    #[cold]
    fn wake_all(&self) {
        let waiting = {
            let mut waiting = self.waiting.lock();
            self.somebody_waits.store(false, Ordering::Relaxed);
            core::mem::take(&mut *waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }

    fn sum(&self, counter: impl Fn(&OneCore) -> &AtomicU64) -> u64 {
        // Acquire: the next counter is read after this one; pairs with `add`.
        self.cores.iter().map(|core| counter(core).load(Ordering::Acquire)).sum()
    }

    /// How many live; exact while none is created or ends.
    pub(super) fn count(&self) -> u64 {
        let ended = self.sum(|core| &core.ended);
        self.sum(|core| &core.created).saturating_sub(ended)
    }

    fn is_none(&self) -> bool {
        self.count() == 0
    }

    /// Waits until none lives.
    pub(super) async fn none(&self) {
        poll_fn(|context| {
            let mut waiting = self.waiting.lock();
            self.somebody_waits.store(true, Ordering::Relaxed);
            // Pairs with the barrier in `ended`.
            barrier::full();
            if self.is_none() {
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

#[cfg(test)]
mod tests {
    use super::Live;
    use crate::sync::PreemptGuard;

    #[test]
    fn ends_are_counted_against_creations() {
        let live = Live::new(2).expect("memory");
        let here = PreemptGuard::new();
        assert!(live.is_none());
        live.created(&here);
        live.created(&here);
        assert_eq!(live.count(), 2);
        live.ended(1, &here);
        assert!(!live.is_none());
        live.ended(1, &here);
        assert!(live.is_none());
    }
}
