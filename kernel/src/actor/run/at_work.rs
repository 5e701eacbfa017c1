//! The actor whose behaviour runs, as the scheduler passes it on: to who must know when it crashes.

use crate::actor::storage::{CellRef, Word, cell};
use crate::message::ask::Asked;
use crate::sched::AtWork;

/// The same for those who have asked it: the actor that has, or had, that word, or the state that it has left.
pub(super) fn asked(cell: CellRef, word: Word) -> Asked {
    // Asked under the word that its address has. What is left of an actor has a later word, which none was asked under yet.
    let known = if word.is_alive() { word.attached() } else { word };
    Asked::new(cell.pointer().addr().get(), known.bits())
}

/// The actor that is, or was, in `cell` with that word while it was attached.
pub(super) fn at_work(cell: CellRef, word: Word) -> AtWork {
    AtWork { place: cell.cast(), life: word.bits(), name: cell::kind(cell, word).name }
}
