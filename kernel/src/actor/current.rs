//! The actor whose behaviour the caller is part of, for what must know when it crashes.

use super::cell::{self, CellHeader};
use super::word::Word;
use crate::sched::{self, AtWork};
use core::ptr::NonNull;

/// An actor, by its cell and by the word that it had while it was attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ActorId {
    cell: NonNull<CellHeader>,
    word: Word,
}

// SAFETY: cells are never unmapped, and their words may be read from any core.
unsafe impl Send for ActorId {}
// SAFETY: as above.
unsafe impl Sync for ActorId {}

impl ActorId {
    /// As the scheduler passes it on.
    pub(super) fn at_work(cell: NonNull<CellHeader>, word: Word) -> AtWork {
        AtWork { place: cell.cast(), life: word.bits(), name: cell::kind(cell, word).name }
    }

    /// The actor that was in `cell` with that word.
    pub(super) fn of(cell: NonNull<CellHeader>, word: Word) -> Self {
        Self { cell, word }
    }

    /// Where it lives.
    pub(crate) fn place(self) -> usize {
        self.cell.addr().get()
    }
}

/// The actor whose behaviour the caller is part of, if it is.
pub(crate) fn current() -> Option<ActorId> {
    let AtWork { place, life, .. } = sched::at_work_here()?;
    // Residents are workers, and what they work for was made by `ActorId::at_work`.
    Some(ActorId { cell: place.cast(), word: Word::from_bits(life) })
}
