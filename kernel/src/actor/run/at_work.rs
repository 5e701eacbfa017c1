//! The actor whose behaviour runs, as the scheduler passes it on: to who must know when it crashes.

use core::ptr::NonNull;

use crate::actor::storage::{CellHeader, Word, cell};
use crate::sched::AtWork;

/// The actor that is, or was, in `cell` with that word while it was attached.
pub(super) fn at_work(cell: NonNull<CellHeader>, word: Word) -> AtWork {
    AtWork { place: cell.cast(), life: word.bits(), name: cell::kind(cell, word).name }
}
