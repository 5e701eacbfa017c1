//! Who has the value of a delayed call: three states, and the exchanges between them. What they are for is drawn in
//! `delayed_call.rs`.

use crate::arch::atomic::{AtomicU8, Ordering};

/// The value waits for its moment.
const PENDING: u8 = 0;
/// The function has it.
const TAKEN: u8 = 1;
/// It was taken back, or will not be set again.
const OVER: u8 = 2;

/// The state of a delayed call. Whoever makes `PENDING` something else has the value, and the timer.
pub struct CallState(AtomicU8);

impl CallState {
    /// The value waits.
    pub fn pending() -> Self {
        Self(AtomicU8::new(PENDING))
    }

    /// Whether the value waits; a hint.
    pub fn is_pending(&self) -> bool {
        // Relaxed: a hint.
        self.0.load(Ordering::Relaxed) == PENDING
    }

    /// Whether it will not wait again; a hint.
    pub fn is_over(&self) -> bool {
        // Relaxed: a hint.
        self.0.load(Ordering::Relaxed) == OVER
    }

    /// The moment has come. Whether the caller has the value now.
    pub fn take(&self) -> bool {
        // Acquire: the value was written before it became pending. Release: pairs with the acquire of whoever frees the
        // block. The exchange makes one taker of several.
        self.0.compare_exchange(PENDING, TAKEN, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// For who has taken the value, has put it back and has armed the timer: whether it waits now. If not, it was given up
    /// meanwhile, and both stay the caller's.
    pub fn set_again(&self) -> bool {
        // Release: the value was written before, and the timer armed; pairs with the acquire in `take` and `give_up`.
        // Relaxed if it fails: what whoever has given it up did before does not matter here.
        self.0.compare_exchange(TAKEN, PENDING, Ordering::Release, Ordering::Relaxed).is_ok()
    }

    /// Gives it up. Whether the caller has the value now; otherwise who has taken it will not set it again.
    pub fn give_up(&self) -> bool {
        // Acquire: the value was written, and the timer armed, before it became pending. Release: pairs with the acquire of
        // whoever frees the block.
        self.0.swap(OVER, Ordering::AcqRel) == PENDING
    }

    /// Who has taken the value will not set it again.
    pub fn end(&self) {
        // Relaxed: a hint to who asks. Who gives it up finds nothing in either state.
        self.0.store(OVER, Ordering::Relaxed);
    }
}
