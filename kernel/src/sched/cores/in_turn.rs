//! Whether a core is in a turn, and how many slice ends that turn has seen: one word, which a turn's beginning and end write.

use crate::arch::atomic::{AtomicU32, Ordering};

/// Zero between turns, otherwise one more than the slice ends seen.
///
/// Relaxed throughout: written by the core's own loop and its interrupts, read by others as an estimate.
pub(crate) struct InTurn(AtomicU32);

impl InTurn {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A turn begins, or its slice ends are counted anew.
    #[inline(always)]
    pub(crate) fn begin(&self) {
        self.0.store(1, Ordering::Relaxed);
    }

    /// The turn has ended, or was suspended.
    #[inline(always)]
    pub(crate) fn end(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Whether a process runs now, as opposed to the loop itself.
    #[inline(always)]
    pub(crate) fn is_in(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Slice ends that the turn has seen.
    pub(crate) fn slices(&self) -> u32 {
        self.0.load(Ordering::Relaxed).saturating_sub(1)
    }

    /// A slice has ended. In the timer's interrupt.
    pub(crate) fn note_slice_end(&self) {
        if self.is_in() {
            self.0.store(self.0.load(Ordering::Relaxed).saturating_add(1), Ordering::Relaxed);
        }
    }
}
