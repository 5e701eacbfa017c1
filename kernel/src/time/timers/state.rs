//! What a timer's owner can know of it: whether it is armed, has fired, or neither.
//!
//! It changes under the lock of the timer's queue. That it has fired may be seen without it: who fires the timer says so last, and touches
//! nothing of it afterwards, so its owner needs no lock to use it again, or to free it.

use crate::arch::atomic::{AtomicU8, Ordering, const_fn};

/// The state of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum State {
    /// In no queue.
    Idle,
    /// In a queue.
    Armed,
    /// Its time has come; it is in no queue any more.
    Fired,
}

const IDLE: u8 = 0;
const ARMED: u8 = 1;
const FIRED: u8 = 2;

/// Where it is kept.
pub struct TimerState(AtomicU8);

impl TimerState {
    const_fn! {
        /// In no queue.
        pub fn new() -> Self {
            Self(AtomicU8::new(IDLE))
        }
    }

    /// For who holds the queue's lock.
    pub fn get(&self) -> State {
        // Relaxed: it changes under the lock.
        match self.0.load(Ordering::Relaxed) {
            ARMED => State::Armed,
            FIRED => State::Fired,
            _ => State::Idle,
        }
    }

    /// It is in the queue from now on, or in none. The caller holds the queue's lock.
    pub fn set_armed(&self, is_armed: bool) {
        // Relaxed: as above.
        self.0.store(if is_armed { ARMED } else { IDLE }, Ordering::Relaxed);
    }

    /// It has fired, and the caller, who holds the queue's lock, touches nothing of it after this.
    pub fn set_fired(&self) {
        // Release: pairs with the acquire in `has_fired`.
        self.0.store(FIRED, Ordering::Release);
    }

    /// Whether it has fired, for its owner, without the lock: then it is the owner's alone.
    pub fn has_fired(&self) -> bool {
        // Acquire: pairs with the release in `set_fired`.
        self.0.load(Ordering::Acquire) == FIRED
    }
}

impl Default for TimerState {
    fn default() -> Self {
        Self::new()
    }
}
