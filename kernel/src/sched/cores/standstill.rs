//! Requests to all cores, in one word, and how all cores but one come to stand still.
//!
//! One leads: it raises the call and waits until each of the others has set its bit. A core sets its bit where it holds
//! nothing, and goes on only after the call was taken back. So what the leader does in between, it does alone.
//!
//! A core that goes on takes its bit back, passes a full barrier, and looks at the call again. The next leader raises the call,
//! passes a full barrier, and looks at the bits. So if it sees a bit of the last time, that core sees its call, and stands.
//! A leader may give up waiting; the cores that stand then go on. It interrupts who stands after it has taken the call back.

use crate::arch::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, const_fn};
use crate::arch::barrier;

/// The calls, and who stands still.
pub struct Standstill {
    calls: AtomicU32,
    led: AtomicBool,
    standing: AtomicU64,
}

impl Standstill {
    const_fn! {
        /// Nothing is called for.
        pub fn new() -> Self {
            Self { calls: AtomicU32::new(0), led: AtomicBool::new(false), standing: AtomicU64::new(0) }
        }
    }

    /// What is called for.
    #[inline(always)]
    pub fn calls(&self) -> u32 {
        // Acquire: pairs with the release in `raise` and `lower`.
        self.calls.load(Ordering::Acquire)
    }

    /// Calls. A caller that must be sure that a sleeping core sees it passes a full barrier and wakes that core.
    pub fn raise(&self, call: u32) {
        // Release: what was written before is visible to whoever answers.
        self.calls.fetch_or(call, Ordering::Release);
    }

    /// Takes the call back. Returns whether it was raised.
    pub fn lower(&self, call: u32) -> bool {
        // Release: what the leader did is visible to whoever goes on. Acquire: what was written before the call is
        // seen.
        self.calls.fetch_and(!call, Ordering::AcqRel) & call != 0
    }

    /// Stands still as the core of this mask until the call is taken back. The caller holds nothing. `wait` ends when this core is
    /// interrupted, or was, and `take_back` forgets that it was: the leader may interrupt a core more than once until it stands, and
    /// none of those is to end the wait.
    pub fn stand(&self, mask: u64, call: u32, mut take_back: impl FnMut(), mut wait: impl FnMut()) {
        while self.calls() & call != 0 {
            // Release: pairs with the acquire in `standing`: the leader sees what this core has written.
            self.standing.fetch_or(mask, Ordering::Release);
            while self.calls() & call != 0 {
                take_back();
                // What was taken back may have said that it is over. It was sent behind that, so it is seen here.
                let is_over = self.calls() & call == 0;
                if !is_over {
                    wait();
                }
            }
            // Release: pairs with the acquire in `standing`.
            self.standing.fetch_and(!mask, Ordering::Release);
            // Between taking the bit back and looking again: the call may be the next leader's by now.
            barrier::full();
        }
    }

    /// Begins to lead, if nobody does: raises the call.
    pub fn lead(&self, call: u32) -> bool {
        // Acquire: one leader after the other, see `end`.
        if self.led.swap(true, Ordering::Acquire) {
            return false;
        }
        self.raise(call);
        // Before the leader looks which cores stand; pairs with the barrier in `stand`.
        barrier::full();
        true
    }

    /// Which cores stand.
    pub fn standing(&self) -> u64 {
        // Acquire: pairs with the release in `stand`.
        self.standing.load(Ordering::Acquire)
    }

    /// Ends what [`lead`](Self::lead) began.
    pub fn end(&self, call: u32) {
        self.lower(call);
        // Release: pairs with the acquire in `lead`.
        self.led.store(false, Ordering::Release);
    }
}

impl Default for Standstill {
    fn default() -> Self {
        Self::new()
    }
}
