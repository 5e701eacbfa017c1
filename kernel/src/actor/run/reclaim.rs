//! Which emptied segments are kept, and when a large one is given up.
//!
//! A worker keeps one segment for its next exchange: the largest it has seen, so that in steady state
//! neither it nor the senders allocate. After C∀ it becomes smaller only when less than half of it was
//! used; there by one slot a gulp, here by half after several such gulps in a row, because one reallocation
//! costs the same for one slot as for half.

use core::cell::Cell;
use core::ptr::NonNull;

use crate::actor::mail::Segment;

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
}

/// Whether less than half of a segment was used.
pub(super) fn is_poorly_used(segment: &Segment) -> bool {
    segment.used_bytes * 2 < segment.capacity_bytes()
}

/// Keeps an emptied segment as the spare, or frees it or the one that was kept.
#[inline(always)]
pub(super) fn keep_or_free(
    history: &History,
    spare: &Cell<Option<NonNull<Segment>>>,
    mut segment: NonNull<Segment>,
    least_bytes: usize,
) {
    // SAFETY: the caller was its last reader.
    let segment_now = unsafe { segment.as_mut() };
    let (is_poorly_used, capacity) = (is_poorly_used(segment_now), segment_now.capacity_bytes());
    segment_now.recycle();
    if is_poorly_used && capacity > least_bytes {
        history.poorly_used.set(history.poorly_used.get() + 1);
    } else {
        history.poorly_used.set(0);
    }
    if let Some(kept) = spare.take() {
        return keep_larger(spare, kept, segment);
    }
    if history.poorly_used.get() >= PATIENCE_GULPS {
        history.poorly_used.set(0);
        if let Some(smaller) = Segment::new((capacity / 2).max(least_bytes)) {
            spare.set(Some(smaller));
            // SAFETY: nobody else uses it.
            unsafe { Segment::free(segment) };
            return;
        }
    }
    spare.set(Some(segment));
}

#[cold]
#[inline(never)]
fn keep_larger(spare: &Cell<Option<NonNull<Segment>>>, a: NonNull<Segment>, b: NonNull<Segment>) {
    // SAFETY: both are the caller's.
    let a_is_larger = unsafe { a.as_ref().capacity_bytes() >= b.as_ref().capacity_bytes() };
    let (kept, freed) = if a_is_larger { (a, b) } else { (b, a) };
    spare.set(Some(kept));
    // SAFETY: empty, and nobody else uses it.
    unsafe { Segment::free(freed) };
}
