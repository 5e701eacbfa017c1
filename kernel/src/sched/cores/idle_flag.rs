//! How a core says that it is about to wait, so that no wake-up is lost.
//!
//! The waiting core:
//! 1. [`announce`](IdleFlag::announce)s how deep it will sleep: a store, then a full fence;
//! 2. **looks again** at everything that could hold work for it;
//! 3. waits only if it found nothing; then, or if it did find something, it [`retract`](IdleFlag::retract)s.
//!
//! The waker:
//! 1. makes the work visible;
//! 2. [`claim`](IdleFlag::claim)s the core: a full fence, then a load, and an exchange if it says idle;
//! 3. if the claim succeeded, sends the signal that the depth calls for.
//!
//! Each side writes one thing and then reads the other's. With a full fence between the two on both sides
//! at least one sees the other: the waker sees the announcement, or the look finds the work. An acquire and
//! a release do not order a store before a later load, and an acquire-release exchange followed by a load
//! does not either.
//!
//! Because of the exchange only one of several wakers signals. Its signal may arrive after the core has gone
//! on by itself, so a waiting core must take a wake-up without work in its stride.

use crate::arch::atomic::{AtomicU32, Ordering, const_fn, fence};

/// How a core waits, and so how it must be woken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Depth {
    /// WFE: ended by SEV, and at the latest by the event stream.
    Doze,
    /// WFI: ended by the wake-up interrupt or the timer.
    Sleep,
}

const AWAKE: u32 = 0;
const DOZING: u32 = 1;
const SLEEPING: u32 = 2;

/// One core's announcement. Written by that core, and by the waker that claims it.
pub struct IdleFlag {
    state: AtomicU32,
}

impl IdleFlag {
    const_fn! {
        /// The flag of a core that is awake.
        pub fn new() -> Self {
            Self { state: AtomicU32::new(AWAKE) }
        }
    }

    /// The core will wait. It must look for work once more after this call, and before it waits.
    ///
    /// Going from one depth to the next needs no [`retract`](Self::retract) between: a waker that claimed
    /// the first announcement did so after its work was visible and its fence, so the look after the second
    /// announcement finds that work; one that misses its exchange by the second tries again.
    pub fn announce(&self, depth: Depth) {
        let state = match depth {
            Depth::Doze => DOZING,
            Depth::Sleep => SLEEPING,
        };
        // Relaxed: the fence orders it before the look.
        self.state.store(state, Ordering::Relaxed);
        // Pairs with the fence in `claim`.
        fence(Ordering::SeqCst);
    }

    /// The core goes on. Returns whether a waker has claimed it, so that a signal has come or will come.
    pub fn retract(&self) -> bool {
        // Acquire: pairs with the release in `claim`, so the core sees the work for which it was claimed
        // without looking twice.
        self.state.swap(AWAKE, Ordering::Acquire) == AWAKE
    }

    /// For a waker, after it has made work visible: if the core is idle, claims its waking, and returns how it waits.
    /// The caller then sends the signal. Of several wakers only one gets an answer.
    pub fn claim(&self) -> Option<Depth> {
        // Pairs with the fence in `announce`.
        fence(Ordering::SeqCst);
        self.claim_after_fence()
    }

    /// As [`claim`](Self::claim), for a waker that asks several cores after one full fence of its own
    /// (`arch::barrier::full`), which must follow the work's becoming visible.
    pub fn claim_after_fence(&self) -> Option<Depth> {
        // Relaxed: the caller's fence orders it; the exchange checks it.
        let mut state = self.state.load(Ordering::Relaxed);
        loop {
            let depth = match state {
                DOZING => Depth::Doze,
                SLEEPING => Depth::Sleep,
                _ => return None,
            };
            // Release: pairs with the acquire in `retract`. Relaxed on failure: another waker was faster, or
            // the core went on, and will look; or it has gone from its doze to sleep and is claimed there.
            match self.state.compare_exchange(state, AWAKE, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Some(depth),
                Err(now) => state = now,
            }
        }
    }

    /// How the core waits, if it does; may be outdated before the caller sees it.
    pub fn depth(&self) -> Option<Depth> {
        // Relaxed: an estimate.
        match self.state.load(Ordering::Relaxed) {
            DOZING => Some(Depth::Doze),
            SLEEPING => Some(Depth::Sleep),
            _ => None,
        }
    }
}

impl Default for IdleFlag {
    fn default() -> Self {
        Self::new()
    }
}
