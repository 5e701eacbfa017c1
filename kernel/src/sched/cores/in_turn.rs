//! Whether a core is in a turn, whether that is urgent, and how many slice ends it has seen: one word, which a turn's beginning and
//! end write.

use crate::arch::atomic::{AtomicU32, Ordering};

/// The turn is that of something urgent.
const URGENT: u32 = 1 << 31;

/// Zero between turns, otherwise one more than the slice ends seen, and perhaps [`URGENT`].
///
/// Relaxed throughout: written by the core's own loop and its interrupts, read by others as an estimate.
pub(crate) struct InTurn(AtomicU32);

/// What is known of a turn that was interrupted.
#[derive(Clone, Copy)]
pub(crate) struct Turn(u32);

impl Turn {
    /// Slice ends that it has seen.
    pub(crate) fn slices(self) -> u32 {
        (self.0 & !URGENT).saturating_sub(1)
    }
}

impl InTurn {
    pub(crate) const fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A turn begins.
    #[inline(always)]
    pub(crate) fn begin(&self, is_urgent: bool) {
        self.0.store(if is_urgent { 1 | URGENT } else { 1 }, Ordering::Relaxed);
    }

    /// The turn is interrupted. What is known of it is for [`Self::go_on`].
    pub(crate) fn interrupt(&self) -> Turn {
        let word = self.0.load(Ordering::Relaxed);
        self.end();
        Turn(word)
    }

    /// The turn that was interrupted goes on.
    pub(crate) fn go_on(&self, Turn(word): Turn) {
        self.0.store(word, Ordering::Relaxed);
    }

    /// The turn's slice ends are counted anew.
    pub(crate) fn begin_again(&self) {
        self.begin(self.is_urgent());
    }

    /// Whether what runs now is urgent.
    pub(crate) fn is_urgent(&self) -> bool {
        self.0.load(Ordering::Relaxed) & URGENT != 0
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
        Turn(self.0.load(Ordering::Relaxed)).slices()
    }

    /// A slice has ended. In the timer's interrupt.
    pub(crate) fn note_slice_end(&self) {
        let word = self.0.load(Ordering::Relaxed);
        if word != 0 && word & !URGENT < !URGENT {
            self.0.store(word + 1, Ordering::Relaxed);
        }
    }
}
