//! Suspending one behaviour, so that nobody else waits for it.
//!
//! The timer interrupt has found a worker past its slice, in the middle of a batch. It splits the batch at
//! the envelope that is being delivered:
//!
//! - the running activation keeps that one envelope, and its actor, which is marked detached;
//! - the worker goes on with the rest, in a new batch, in its next turn.
//!
//! Where exactly the interrupt hit does not matter. If the envelope's behaviour has begun, it goes on when
//! the stack is resumed. If the loop had moved its position to this envelope and done nothing yet, the
//! resumed activation finds the actor detached, by itself, and delivers; or finds the end of its batch first,
//! and delivers what is left undelivered afterwards. Between the end of a behaviour that ends its actor and
//! the next position preemption is off, so the interrupt never looks at a cell that is being freed.
//!
//! The order of messages: everything the worker meets for the detached actor comes after the split envelope
//! in mailbox order and goes to the side queue in that order; the activation delivers the side queue after its
//! own envelope, and re-attaches under the side queue's lock only when it is empty. A message delivered by a
//! worker afterwards comes after all of them.

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::ptr::NonNull;

use super::batch::Batch;
use super::cell::CellHeader;
use super::crash;
use super::delivery::{self, Tally};
use super::envelope::{self, Envelope, OUTCOME_MASK, Request};
use super::executor::Shared;
use super::segment::Segment;
use super::side_queue::{self, Next};
use super::word::Word;
use super::worker::Worker;
use crate::arch::atomic::Ordering;
use crate::mem;
use crate::sched::{Detached, Step};
use crate::sync::PreemptGuard;

/// Stands for a suspended behaviour until its activation has ended.
struct Piece {
    shared: Arc<Shared>,
    cell: NonNull<CellHeader>,
    word: Word,
}

// SAFETY: a cell's word may be used from any core.
unsafe impl Send for Piece {}

impl Detached for Piece {
    fn crashed(&self) {
        crash::end_crashed(self.cell, self.word);
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.shared.piece_ended();
    }
}

/// Splits the batch in hand. Runs in the timer interrupt, on the stack of the worker's turn, which holds no
/// lock and has preemption enabled.
pub(super) fn detach(worker: &Worker) -> Option<Box<dyn Detached>> {
    // SAFETY: set at the start and below only, to live batches.
    let batch = unsafe { &*worker.batch.load(Ordering::Relaxed) };
    let mut segment = batch.segment()?;
    let envelope = batch.current()?;
    // SAFETY: not delivered yet, or being delivered; its head is never changed.
    let (cell, expected) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
    // SAFETY: cells are never unmapped.
    if unsafe { cell.as_ref() }.word() != expected {
        // It is passing by a dead or a detached actor's message: that does not take long.
        return None;
    }
    let rest = Batch::new()?;
    let Ok(piece) = mem::try_box(Piece { shared: worker.shared.clone(), cell, word: expected }) else {
        // SAFETY: just made.
        unsafe { Batch::free(rest) };
        return None;
    };
    worker.shared.piece_began();
    if !side_queue::open(cell, expected) {
        // SAFETY: just made.
        unsafe { Batch::free(rest) };
        return None;
    }
    // SAFETY: measuring changes nothing; the rest begins behind the envelope, in the same segment.
    unsafe {
        let bytes = Envelope::ask(envelope, Request::Measure);
        let end = NonNull::new_unchecked(batch.end());
        segment.as_mut().share();
        rest.as_ref().set_mailbox_of(batch);
        rest.as_ref().set_place(segment, envelope.cast::<u8>().add(bytes), end);
    }
    batch.split(envelope);
    worker.batch.store(rest.as_ptr(), Ordering::Relaxed);
    let here = PreemptGuard::new();
    Worker::statistics(&here).detached_behaviours.bump();
    Some(piece)
}

/// The rest of an activation whose batch was split: its envelope, the side queue, the actor's return.
pub(super) fn finish_detached(batch: NonNull<Batch>) -> Step {
    // SAFETY: a split batch is its activation's alone.
    let split = unsafe { batch.as_ref() };
    let mut tally = Tally::default();
    let Some(held) = split.held() else { return Step::Done };
    // SAFETY: the envelope's head stays readable as long as this activation shares the segment.
    let (cell, word) = unsafe { (held.as_ref().cell, held.as_ref().word) };
    let mut ended = split.has_ended_actor();
    if let Some(envelope) = split.undelivered() {
        ended = deliver_one(envelope, &mut tally);
    }
    if let Some(segment) = split.segment() {
        // SAFETY: the envelope was delivered, so nothing in the segment is this activation's any more.
        unsafe {
            if segment.as_ref().release() {
                Segment::free(segment);
            }
        }
    }
    while !ended {
        match side_queue::take_or_reattach(cell, word) {
            Next::Reattached => break,
            Next::OutOfMemory => crate::arch::cpu::relax(),
            Next::Deliver(first) => ended = deliver_chain(first, &mut tally),
        }
    }
    let here = PreemptGuard::new();
    Worker::note(tally, &here);
    // SAFETY: nobody else knows it any more.
    unsafe { Batch::free(batch) };
    Step::Done
}

/// Delivers one envelope to an actor that this activation holds. Whether the actor has ended.
fn deliver_one(envelope: NonNull<Envelope>, tally: &mut Tally) -> bool {
    // SAFETY: not delivered yet, and the actor is held by this activation.
    let (cell, word, result) = unsafe {
        (envelope.as_ref().cell, envelope.as_ref().word, Envelope::ask(envelope, Request::Deliver))
    };
    tally.handled += 1;
    if result & OUTCOME_MASK == 0 {
        return false;
    }
    delivery::end_actor(cell, word, envelope::outcome(result), tally);
    true
}

/// Delivers a side queue's chain. Whether the actor has ended; what came after that was dropped.
fn deliver_chain(first: NonNull<Segment>, tally: &mut Tally) -> bool {
    let mut ended = false;
    let mut next = Some(first);
    while let Some(segment) = next {
        let mut position = Segment::begin(segment);
        // SAFETY: the chain was taken from the side queue, so it is this activation's alone.
        unsafe {
            let end = position.add(segment.as_ref().used_bytes);
            while position < end {
                let envelope = position.cast::<Envelope>();
                let bytes = Envelope::ask(envelope, Request::Measure);
                if ended {
                    Envelope::ask(envelope, Request::Drop);
                    tally.dead_letters += 1;
                } else {
                    ended = deliver_one(envelope, tally);
                }
                position = position.add(bytes);
            }
            next = NonNull::new(segment.as_ref().next);
            Segment::free(segment);
        }
    }
    ended
}
