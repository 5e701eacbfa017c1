//! One word of each core that says what its loop must look at: a bit for each queue that may have something, a bit for each
//! inbox where something may have arrived, and one for everything else that wants attention (a timer that is due, a call
//! to all cores, a core that is out of service, and so on, see `run/attention.rs`). So a turn looks at one word instead of
//! all, and between two turns that only yield this word says that nothing but the deque wants a look.
//!
//! A set bit may be stale. A clear one is right, except for what a sender has put there and not flagged yet. The owner
//! clears the bit of what it found empty, and then looks once more; or it clears the bit first, and looks then. What was
//! put there before the clearing is seen by that look, and a sender that flags after it sets the bit again.

use crate::arch::atomic::{AtomicU32, Ordering};

/// The mask; written by the owner and by senders.
pub struct ReadyMask(AtomicU32);

impl ReadyMask {
    /// Nothing anywhere.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// The bits now.
    #[inline(always)]
    pub fn bits(&self) -> u32 {
        // Acquire: pairs with `flag`.
        self.0.load(Ordering::Acquire)
    }

    /// Whether these bits are set and no others, for an owner who then looks at nothing that others have put anywhere.
    #[inline(always)]
    pub fn are_only(&self, bits: u32) -> bool {
        // Relaxed: nothing is acquired, and the owner's next look sees what this one misses.
        self.0.load(Ordering::Relaxed) == bits
    }

    /// Something was put into the queue of this bit.
    #[inline(always)]
    pub fn flag(&self, bit: u32) {
        // AcqRel: the release publishes what was put there to the owner's acquire in `unflag` and `bits`.
        self.0.fetch_or(bit, Ordering::AcqRel);
    }

    /// The owner has put something there itself, or where several bits are for. A set bit stays set, because the owner alone clears it, and to itself
    /// it has nothing to publish.
    #[inline(always)]
    pub fn flag_own(&self, bits: u32) {
        // Relaxed: a bit that is read as set was set by this core, or is set for good until this core clears it.
        if self.0.load(Ordering::Relaxed) & bits != bits {
            self.flag(bits);
        }
    }

    /// The owner will look at what this bit stands for, right after this.
    pub fn clear(&self, bit: u32) {
        // AcqRel: if a sender's `flag` came before, this acquires what it has put there, and the look that follows sees
        // that; if it comes after, its bit stays.
        self.0.fetch_and(!bit, Ordering::AcqRel);
    }

    /// The owner has found the queue of this bit empty.
    pub fn unflag(&self, bit: u32, is_empty: impl FnOnce() -> bool) {
        self.clear(bit);
        if !is_empty() {
            self.flag(bit);
        }
    }
}

impl Default for ReadyMask {
    fn default() -> Self {
        Self::new()
    }
}
