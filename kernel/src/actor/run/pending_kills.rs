//! How many kills are pending, of all actors and of those in each kind of cell: what an interrupt asks first, before it looks through the watches
//! of the actor whose behaviour it has met. Any number may watch that one, and interrupts are masked.

use crate::actor::storage::CellRef;
use crate::arch::atomic::{AtomicU32, Ordering};
use crate::sched;

/// Kinds of cells, by their addresses. A power of two.
const KINDS: usize = 64;

static PENDING: [AtomicU32; KINDS] = [const { AtomicU32::new(0) }; KINDS];

fn of(cell: CellRef) -> &'static AtomicU32 {
    // The low bits of addresses are alike, and cells of one size lie side by side.
    let place = cell.pointer().addr().get() >> 4;
    &PENDING[(place ^ (place >> 6)) % KINDS]
}

/// One more, of the actor in that cell, which is kept in mind after this.
pub(super) fn begin(cell: CellRef) {
    // Relaxed, here and below: interrupts look again and again, and what was killed is known elsewhere.
    of(cell).fetch_add(1, Ordering::Relaxed);
    sched::begin_pending_kill();
}

/// One fewer.
pub(super) fn end(cell: CellRef) {
    of(cell).fetch_sub(1, Ordering::Relaxed);
    sched::end_pending_kill();
}

/// Whether one of the actor in that cell may be pending: if not, none is.
pub(super) fn may_be(cell: CellRef) -> bool {
    of(cell).load(Ordering::Relaxed) != 0
}
