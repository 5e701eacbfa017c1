//! Actors that crash: a behaviour that panicked or faulted never returns.
//!
//! The actor ends. Its state is not dropped, for the behaviour stopped at an unknown point of changing it;
//! its cell stays claimed and is never used again. What was sent to it and what is sent later is refused or counted as dead
//! letters. Everyone else goes on.

use core::ptr::NonNull;

use super::cell::CellHeader;
use super::delivery::Tally;
use super::envelope::{Envelope, Request};
use super::side_queue;
use super::word::{Life, Word};
use super::worker::{self, Worker};
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;

/// The behaviour that a worker's turn was running has crashed. The turn's activation is gone; the next turn
/// goes on behind its envelope.
pub(super) fn crashed(worker: &Worker) {
    let here = PreemptGuard::new();
    // SAFETY: set at the start and by `detach` only, to live batches.
    let batch = unsafe { &*worker.batch.load(Ordering::Relaxed) };
    if !batch.is_armed() {
        return;
    }
    batch.disarm();
    let Some(envelope) = batch.current() else { return };
    // SAFETY: the envelope's head is never changed; measuring changes nothing.
    let (cell, word, bytes) = unsafe {
        (envelope.as_ref().cell, envelope.as_ref().word, Envelope::ask(envelope, Request::Measure))
    };
    let mut tally = Tally::default();
    end_crashed(cell, word, &mut tally);
    batch.advance(envelope, bytes);
    worker::note(&worker.shared, &tally, &here);
}

/// Ends an actor that has crashed, if it has not ended yet.
pub(super) fn end_crashed(cell: NonNull<CellHeader>, word: Word, tally: &mut Tally) {
    let here = PreemptGuard::new();
    // SAFETY: cells are never unmapped.
    let header = unsafe { cell.as_ref() };
    if !header.word().is_same_actor(word) {
        return;
    }
    tally.ended += 1;
    tally.dead_letters += side_queue::discard(cell);
    header.set_word(word.after_end(Life::Starting).unwrap_or(Word::UNUSED));
    Worker::statistics(&here).actors_crashed.bump();
    super::ask::files::crashed(cell, word);
}
