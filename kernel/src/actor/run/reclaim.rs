//! Which emptied segments are kept, and when a large one is given up.
//!
//! Of each mailbox one segment is kept for its next exchange, the largest it has had, and of each worker one more, so that in
//! steady state neither it nor the senders allocate, unless very much waits (`mail/growth.rs`). After C∀ it becomes smaller only when less than half of it was
//! used; there by one slot a gulp, here by half after several such gulps in a row, because one reallocation
//! costs the same for one slot as for half.

use core::cell::Cell;
use core::ptr::NonNull;

use crate::actor::mail::growth::AT_ONCE_BYTES;
use crate::actor::mail::{Mailbox, Segment};

/// Gulps in a row that must leave half of the segment unused before it is given up.
const PATIENCE_GULPS: u32 = 64;

/// How well the kept segment was used lately.
pub(super) struct History {
    poorly_used: Cell<u32>,
}

impl History {
    pub(super) const fn new() -> Self {
        Self { poorly_used: Cell::new(0) }
    }

    /// A segment that has grown was used well.
    pub(super) fn note_well_used(&self) {
        self.poorly_used.set(0);
    }

    /// A segment that has grown was used poorly: whether it may be used as it is once more. If not, the next that is kept or freed is the
    /// last one of those that make it smaller.
    pub(super) fn note_poorly_used(&self) -> bool {
        let poorly_used = self.poorly_used.get() + 1;
        let may_stay = poorly_used < PATIENCE_GULPS;
        if may_stay {
            self.poorly_used.set(poorly_used);
        }
        may_stay
    }
}

/// Whether less than half of a segment was used.
pub(super) fn is_poorly_used(segment: &Segment, used: usize) -> bool {
    used * 2 < segment.capacity_bytes()
}

/// Keeps an emptied segment, which is as good as new, and of which so many bytes were used: in the mailbox's hand if it is
/// larger than what is there, else as the worker's spare, or frees it or the one that was kept.
#[cold]
#[inline(never)]
pub(super) fn keep_or_free(
    history: &History,
    mailbox: &Mailbox,
    spare: &Cell<Option<NonNull<Segment>>>,
    mut segment: NonNull<Segment>,
    used: usize,
    least_bytes: usize,
) {
    // SAFETY: nobody else uses it.
    let emptied = unsafe { segment.as_ref() };
    let (is_poorly_used, capacity) = (is_poorly_used(emptied, used), emptied.capacity_bytes());
    if is_poorly_used && capacity > least_bytes {
        history.poorly_used.set(history.poorly_used.get() + 1);
    } else {
        history.poorly_used.set(0);
    }
    if history.poorly_used.get() >= PATIENCE_GULPS {
        history.poorly_used.set(0);
        // With preemption disabled, so not a long one: if more is needed, it grows again.
        if let Some(smaller) = Segment::new((capacity / 2).min(AT_ONCE_BYTES).max(least_bytes)) {
            // SAFETY: nobody else uses it.
            unsafe { Segment::free(segment) };
            segment = smaller;
        }
    }
    if let Some(kept) = mailbox.hand.take_spare() {
        let (larger, smaller) = by_size(kept, segment);
        mailbox.hand.keep_spare(larger);
        segment = smaller;
    } else if mailbox.hand.keep_spare(segment) {
        return;
    }
    let freed = match spare.take() {
        None => return spare.set(Some(segment)),
        Some(kept) => {
            let (larger, smaller) = by_size(kept, segment);
            spare.set(Some(larger));
            smaller
        }
    };
    // SAFETY: empty, and nobody else uses it.
    unsafe { Segment::free(freed) };
}

/// The larger of two first.
fn by_size(a: NonNull<Segment>, b: NonNull<Segment>) -> (NonNull<Segment>, NonNull<Segment>) {
    // SAFETY: both are the caller's.
    let a_is_larger = unsafe { a.as_ref().capacity_bytes() >= b.as_ref().capacity_bytes() };
    if a_is_larger { (a, b) } else { (b, a) }
}
