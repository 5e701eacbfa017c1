//! Whether a core is in a turn, whether that is urgent, how many slice ends it has seen, whether what waits behind it is to be looked
//! at, and whether it is to end: one word, which a turn's beginning and end write. So what was asked of one turn is not left to
//! the next.

use crate::arch::atomic::{AtomicU32, Ordering};

/// The turn is that of something urgent.
const URGENT: u32 = 1 << 31;

/// What waits behind the turn is to be looked at, with interrupts unmasked.
const LOOKS: u32 = 1 << 30;

/// The turn is a resident's, and the piece of work that runs in it is to be suspended.
const LONG: u32 = 1 << 29;

/// The turn is a resident's, and is to end by itself at the next boundary between two pieces of work.
const ENDS: u32 = 1 << 28;

/// It was told so.
const TOLD: u32 = 1 << 27;

/// It is the second look: what waited at the first and still does goes where other cores find it.
const AGAIN: u32 = 1 << 26;

/// One more than the slice ends seen.
const SLICES: u32 = AGAIN - 1;

/// Zero between turns, otherwise one more than the slice ends seen, and perhaps the bits above.
///
/// Relaxed throughout: written by the core's own loop and its interrupts, read by others as an estimate.
pub struct InTurn(AtomicU32);

/// What is known of a turn at one moment, or of one that was interrupted.
#[derive(Clone, Copy)]
pub struct Turn(u32);

impl Turn {
    /// Slice ends that it has seen.
    pub fn slices(self) -> u32 {
        (self.0 & SLICES).saturating_sub(1)
    }

    /// Whether what waits behind it is to be looked at.
    pub fn looks(self) -> bool {
        self.0 & LOOKS != 0
    }

    /// Whether that is the second look.
    pub fn looks_again(self) -> bool {
        self.0 & AGAIN != 0
    }

    /// Whether it is to be interrupted, for whatever it was asked.
    pub fn wants_interrupt(self) -> bool {
        self.0 & (LOOKS | LONG) != 0 || self.is_to_end()
    }

    /// The same turn, asked to end between two pieces of work.
    pub fn asked_to_end(self) -> Self {
        Self(self.0 | ENDS)
    }

    /// Whether the piece of work that runs in a resident's turn is to be suspended.
    pub fn is_long(self) -> bool {
        self.0 & LONG != 0
    }

    /// Whether it was asked to end between two pieces of work, and does not know yet.
    pub fn is_to_end(self) -> bool {
        self.0 & (ENDS | TOLD) == ENDS
    }
}

impl InTurn {
    /// Between two turns.
    pub fn new() -> Self {
        Self(AtomicU32::new(0))
    }

    /// A turn begins.
    #[inline(always)]
    pub fn begin(&self, is_urgent: bool) {
        self.set(if is_urgent { 1 | URGENT } else { 1 });
    }

    /// What is known of the turn in progress: read once, because interrupts ask for all of it.
    #[inline(always)]
    pub fn turn(&self) -> Turn {
        Turn(self.word())
    }

    /// The turn is interrupted. What is known of it is for [`Self::go_on`], which forgets the look that it was asked for: that is the caller's.
    pub fn interrupt(&self) -> Turn {
        let word = self.word();
        self.end();
        Turn(word)
    }

    /// The turn that was interrupted goes on.
    pub fn go_on(&self, Turn(word): Turn) {
        self.0.store(word & !(LOOKS | AGAIN), Ordering::Relaxed);
    }

    /// The turn's slice ends are counted anew.
    pub fn begin_again(&self) {
        self.0.store(self.word() & (URGENT | LOOKS | AGAIN) | 1, Ordering::Relaxed);
    }

    /// Whether what runs now is urgent.
    pub fn is_urgent(&self) -> bool {
        self.word() & URGENT != 0
    }

    /// Asks for a look at what waits behind the turn, or for the second one. In the timer's interrupt, which has found a turn.
    pub fn ask_to_look(&self, again: bool) {
        self.0.store(self.word() | LOOKS | if again { AGAIN } else { 0 }, Ordering::Relaxed);
    }

    /// The piece of work that runs in a resident's turn is to be suspended. In the timer's interrupt, which has found such a turn.
    pub fn note_long(&self) {
        self.0.store(self.word() & !ENDS | LONG, Ordering::Relaxed);
    }

    /// A resident's turn is to end between two pieces of work. In the timer's interrupt, which has found such a turn.
    pub fn ask_to_end(&self) {
        self.0.store(self.word() | ENDS, Ordering::Relaxed);
    }

    /// Whether it was asked to.
    pub fn was_to_end(&self) -> bool {
        self.word() & ENDS != 0
    }

    /// It has been told. Where an interrupt, or a section, ends in such a turn.
    pub fn note_told(&self) {
        self.0.store(self.word() | TOLD, Ordering::Relaxed);
    }

    /// The turn has ended, or was suspended.
    #[inline(always)]
    pub fn end(&self) {
        self.set(0);
    }

    /// Whether a process runs now, as opposed to the loop itself.
    #[inline(always)]
    pub fn is_in(&self) -> bool {
        self.word() != 0
    }

    /// Slice ends that the turn has seen.
    pub fn slices(&self) -> u32 {
        Turn(self.word()).slices()
    }

    /// A slice has ended. In the timer's interrupt.
    pub fn note_slice_end(&self) {
        let word = self.word();
        if word != 0 && word & SLICES < SLICES {
            self.0.store(word + 1, Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn word(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }

    /// What the next turn is, and nothing of the one before.
    #[inline(always)]
    fn set(&self, word: u32) {
        self.0.store(word, Ordering::Relaxed);
    }
}

impl Default for InTurn {
    fn default() -> Self {
        Self::new()
    }
}
