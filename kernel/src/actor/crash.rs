//! Actors that crash: a behaviour that panicked or faulted never returns.
//!
//! The actor ends. Its state is not dropped, for the behaviour stopped at an unknown point of changing it;
//! its cell is never used again. What was sent to it and what is sent later is refused or counted as dead
//! letters. Everyone else goes on.

use core::ptr::NonNull;

use super::cell::CellHeader;
use super::envelope::{Envelope, Request};
use super::side_queue;
use super::word::Word;
use super::worker::Worker;
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;

/// The behaviour that a worker's turn was running has crashed. The turn's activation is gone; the next turn
/// goes on behind its envelope.
pub(super) fn crashed(worker: &Worker) {
    // SAFETY: set at the start and by `detach` only, to live batches.
    let batch = unsafe { &*worker.batch.load(Ordering::Relaxed) };
    let Some(envelope) = batch.segment().and_then(|_| batch.current()) else { return };
    // SAFETY: the envelope's head is never changed; measuring changes nothing.
    let (cell, word, bytes) = unsafe {
        (envelope.as_ref().cell, envelope.as_ref().word, Envelope::ask(envelope, Request::Measure))
    };
    end_crashed(cell, word);
    batch.advance(envelope, bytes);
}

/// Ends an actor that has crashed, if it has not ended yet.
pub(super) fn end_crashed(cell: NonNull<CellHeader>, word: Word) {
    let here = PreemptGuard::new();
    // SAFETY: cells are never unmapped.
    let header = unsafe { cell.as_ref() };
    if !header.word().is_same_actor(word) {
        return;
    }
    let lost = side_queue::discard(cell);
    let Some(free) = word.ended() else { return header.set_word(Word::NEVER_USED) };
    header.set_word(free);
    let statistics = Worker::statistics(&here);
    statistics.dead_letters.add(lost);
    statistics.actors_crashed.bump();
}
