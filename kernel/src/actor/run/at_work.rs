//! The actor whose behaviour runs, as the scheduler passes it on: to who must know when it crashes.

use crate::actor::storage::{CellRef, Word, cell};
use crate::message::ask::Asked;
use crate::sched::{self, AtWork};
use crate::sync::Identity;
use crate::watch::Exit;

/// The same for those who have asked it: the actor that has, or had, that word, or the state that it has left.
pub(super) fn asked(cell: CellRef, word: Word) -> Asked {
    // Asked under the word that its address has. What is left of an actor has a later word, which none was asked under yet.
    let known = if word.is_alive() { word.attached() } else { word };
    Asked::new(cell.pointer().addr().get(), known.bits())
}

/// The same for those who watch it.
pub(crate) fn identity(cell: CellRef, word: Word) -> Identity {
    let AtWork { place, life, .. } = at_work(cell, word.attached());
    Identity::Actor { place: place.addr().get(), life }
}

/// An actor has ended, as its word says by now: tells those who watch it. `word` is the one that it had while it lived. Runs nothing of
/// the application's.
#[inline(always)]
pub(super) fn tell_of_end(cell: CellRef, word: Word, exit: Exit) {
    if cell::watched(cell, word).after_end() {
        sched::tell_of_end(identity(cell, word), exit);
    }
}

/// The actor that is, or was, in `cell` with that word while it was attached.
pub(super) fn at_work(cell: CellRef, word: Word) -> AtWork {
    AtWork { place: cell.cast(), life: word.bits(), name: cell::kind(cell, word).name }
}
