//! What happened during a delivery, to be added to the statistics, and to the count of the living, afterwards.
//!
//! It lies in the batch, not on the stack of who delivers: a behaviour that crashes takes its stack with it, but must not
//! take the ends of other actors that were counted before it. Who notes a tally takes it, so nothing is noted twice.

use core::ptr;

use crate::actor::storage::{CellHeader, CellRef};
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU16, AtomicU64, Ordering};

/// Counts that were not noted yet. Written by the activation that delivers, and read on its stack when it has crashed:
/// one core at a time, so every access is relaxed, and none is a read-modify-write.
pub(super) struct Tally {
    handled: AtomicU64,
    dead_letters: AtomicU64,
    ended: AtomicU64,
    kept: AtomicBool,
    /// The cell of the actor that has ended, while its state is dropped; else null.
    dropping: AtomicPtr<CellHeader>,
    /// The number of the meter that this actor has had, or 0.
    meter: AtomicU16,
}

/// What was taken from a tally.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Counts {
    pub handled: u64,
    pub dead_letters: u64,
    pub ended: u64,
    /// Whether one of those that ended has left its storage or its state behind.
    pub kept: bool,
}

#[inline(always)]
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
}

fn take(counter: &AtomicU64) -> u64 {
    let value = counter.load(Ordering::Relaxed);
    counter.store(0, Ordering::Relaxed);
    value
}

impl Tally {
    pub(super) const fn new() -> Self {
        Self {
            handled: AtomicU64::new(0),
            dead_letters: AtomicU64::new(0),
            ended: AtomicU64::new(0),
            kept: AtomicBool::new(false),
            dropping: AtomicPtr::new(ptr::null_mut()),
            meter: AtomicU16::new(0),
        }
    }

    /// So many messages were handled. Counted in one go: those that came before a crash are missing from the statistics.
    #[inline(always)]
    pub(super) fn add_handled(&self, messages: u64) {
        add(&self.handled, messages);
    }

    /// How many were handled and not noted.
    pub(super) fn handled(&self) -> u64 {
        self.handled.load(Ordering::Relaxed)
    }

    /// The state in this cell is being dropped, or none is.
    pub(super) fn set_dropping(&self, cell: Option<CellRef>) {
        self.dropping.store(cell.map_or(ptr::null_mut(), |cell| cell.pointer().as_ptr()), Ordering::Relaxed);
    }

    /// The actor whose state is being dropped has had that meter, which its word does not say any more.
    pub(super) fn set_meter(&self, number: u16) {
        self.meter.store(number, Ordering::Relaxed);
    }

    /// That meter's number, once, or 0.
    pub(super) fn take_meter(&self) -> u16 {
        let number = self.meter.load(Ordering::Relaxed);
        self.meter.store(0, Ordering::Relaxed);
        number
    }

    /// Whether the activation was dropping the state in this cell.
    pub(super) fn is_dropping(&self, cell: CellRef) -> bool {
        self.dropping.load(Ordering::Relaxed) == cell.pointer().as_ptr()
    }

    /// So many messages were dropped, for their actors had ended.
    pub(super) fn add_dead_letters(&self, messages: u64) {
        add(&self.dead_letters, messages);
    }

    /// An actor has ended; `kept` if it has left its storage or its state behind.
    pub(super) fn add_end(&self, kept: bool) {
        add(&self.ended, 1);
        if kept {
            self.kept.store(true, Ordering::Relaxed);
        }
    }

    /// How many messages were handled, for once.
    #[inline(always)]
    pub(super) fn take_handled(&self) -> u64 {
        take(&self.handled)
    }

    /// Whether there is more to note than messages that were handled.
    #[inline(always)]
    pub(super) fn has_ends(&self) -> bool {
        self.dead_letters.load(Ordering::Relaxed) | self.ended.load(Ordering::Relaxed) > 0
    }

    /// All that was counted, for once.
    pub(super) fn take(&self) -> Counts {
        let kept = self.kept.load(Ordering::Relaxed);
        self.kept.store(false, Ordering::Relaxed);
        Counts {
            handled: take(&self.handled),
            dead_letters: take(&self.dead_letters),
            ended: take(&self.ended),
            kept,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Counts, Tally};

    #[test]
    fn what_was_counted_is_taken_once() {
        let tally = Tally::new();
        assert!(!tally.has_ends());
        tally.add_handled(3);
        assert!(!tally.has_ends());
        tally.add_dead_letters(2);
        tally.add_end(true);
        tally.add_end(false);
        assert!(tally.has_ends());
        assert_eq!(tally.take(), Counts { handled: 3, dead_letters: 2, ended: 2, kept: true });
        assert_eq!(tally.take(), Counts { handled: 0, dead_letters: 0, ended: 0, kept: false });
    }
}
