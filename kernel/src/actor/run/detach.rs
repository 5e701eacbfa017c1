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
//! and delivers what is left undelivered afterwards.
//!
//! What an envelope drops is the application's code, too, and may take long: a dead letter's message, or the state of the
//! actor that its behaviour has ended. The actor's word then says that it has ended, so there is none to detach: the
//! activation keeps the envelope alone.
//!
//! The order of messages: everything the worker meets for the detached actor comes after the split envelope
//! in mailbox order and goes to the side queue in that order; the activation delivers the side queue after its
//! own envelope, and re-attaches under the side queue's lock only when it is empty. A message delivered by a
//! worker afterwards comes after all of them.

use alloc::boxed::Box;
use core::ptr::NonNull;

use super::at_work::at_work;
use super::batch::Batch;
use super::executor_state::{self, ExecutorState};
use super::kill::Piece;
use super::metered::Metered;
use super::side_queue::{self, Next};
use super::worker::{Worker, account};
use super::{crash, delivery};
use crate::actor::mail::envelope::OUTCOME_MASK;
use crate::actor::mail::{Envelope, Gulp, Segment};
use crate::actor::storage::{CellRef, Word};
use crate::arch::atomic::Ordering;
use crate::mem::{self, Counted, orphans};
use crate::sched::{AtWork, Detached, EndOfPiece, Step};
use crate::sync::PreemptGuard;
use crate::watch::Exit;

/// Stands for a suspended behaviour until its activation has ended.
struct SuspendedBehaviour {
    executor: Counted<ExecutorState>,
    cell: CellRef,
    word: Word,
    /// What the activation has in hand; its own from the split on.
    batch: NonNull<Batch>,
    owns_batch: bool,
    affinity: u64,
}

// SAFETY: a cell's word may be used from any core; the batch is touched by the activation, or by `crashed`
// when the activation is gone.
unsafe impl Send for SuspendedBehaviour {}

impl Detached for SuspendedBehaviour {
    fn affinity(&self) -> u64 {
        self.affinity
    }

    fn goes_on(&self) {
        let here = PreemptGuard::new();
        if let Some(worker) = self.executor.worker_here(&here) {
            worker.begin_piece(&here);
        }
    }

    fn stops(&self) {
        let here = PreemptGuard::new();
        if let Some(worker) = self.executor.worker_here(&here) {
            worker.end_piece();
        }
    }

    fn crashed(&self, exit: Exit) {
        let here = PreemptGuard::new();
        self.stops();
        // SAFETY: the activation is gone, so its batch is ours until it is freed below.
        unsafe {
            let tally = &self.batch.as_ref().tally;
            note_in_hand(self.batch.as_ref());
            if !self.batch.as_ref().has_given_back() {
                crash::end_crashed((self.cell, self.word), Word::is_detached, tally, exit);
            }
            give_back(self.batch);
            // With it what was counted before the crash.
            account::note(&self.executor, tally, &here);
        }
        self.executor.note_end_of_piece(exit);
    }

    fn is_to_end(&self, asked: EndOfPiece) -> bool {
        // SAFETY: the batch lives as long as this.
        let batch = unsafe { self.batch.as_ref() };
        if batch.has_given_back() {
            // It has nothing left to do. The word in the cell may say that the actor is held: by another.
            return false;
        }
        // What it is split at is readable until the activation lets go of the segment.
        let envelope = if batch.drains() { batch.current() } else { batch.held() };
        let piece = Piece {
            cell: self.cell,
            word: self.word,
            is_held: Word::is_detached,
            tally: &batch.tally,
            envelope: envelope.filter(|_| batch.segment().is_some()),
        };
        piece.is_to_end(&self.executor, asked, true)
    }

    fn at_work(&self) -> Option<AtWork> {
        Some(at_work(self.cell, self.word))
    }
}

impl Drop for SuspendedBehaviour {
    fn drop(&mut self) {
        if self.owns_batch {
            // SAFETY: its activation has ended, and nobody else knows it.
            unsafe { Batch::free(self.batch) };
        }
        self.executor.one_ended();
    }
}

/// Splits the batch in hand. Runs in the timer interrupt, on the stack of the worker's turn, which holds no
/// lock and has preemption enabled.
pub(super) fn detach(worker: &Worker) -> Option<Box<dyn Detached>> {
    // SAFETY: set at the start and below only, to live batches.
    let batch = unsafe { &*worker.batch.load(Ordering::Relaxed) };
    if !batch.is_armed() {
        // The turn is not delivering: it does not take long to look around.
        return None;
    }
    worker.settle(&PreemptGuard::new());
    let segment = batch.segment()?;
    let envelope = batch.current_of_whole()?;
    // SAFETY: not delivered yet, or being delivered; its head is never changed.
    let (cell, expected) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
    let word = cell.word();
    let holds_actor = word.is_attached(expected);
    if !holds_actor && word.is_same_actor(expected) {
        // It is putting a detached actor's message aside: that does not take long.
        return None;
    }
    let affinity = if batch.mailbox().is_pinned() { worker.core().mask() } else { u64::MAX };
    let rest = Batch::new()?;
    let suspended = SuspendedBehaviour {
        executor: worker.executor.clone(),
        cell,
        word: expected,
        batch: NonNull::from(batch),
        owns_batch: false,
        affinity,
    };
    // Counted first: when this is dropped, that says that the behaviour has ended.
    worker.executor.behaviour_suspended();
    let suspended = mem::kernel_box(suspended).ok();
    let Some(mut suspended) = suspended.filter(|_| !holds_actor || side_queue::open(cell)) else {
        // SAFETY: just made.
        unsafe { Batch::free(rest) };
        return None;
    };
    // Only now that it will be split. The loop may have come to the end that it was cut to, and must find it cut, or split.
    batch.mend();
    // SAFETY: measuring changes nothing; the rest begins behind the envelope, in the same segment.
    unsafe {
        let bytes = Envelope::measure(envelope);
        segment.as_ref().share();
        rest.as_ref().set_mailbox_of(batch);
        rest.as_ref().set_place(segment, envelope.cast::<u8>().add(bytes), batch.end());
    }
    // SAFETY: just made. This is the worker's core, and nobody is in the middle of writing behind the batch, because
    // preemption was enabled.
    unsafe { rest.as_ref() }.take_gate();
    batch.split(envelope, holds_actor);
    suspended.owns_batch = true;
    // What there is for the actor must be put aside. The rest has been unchecked since it was made.
    if batch.mailbox().hand.follows() {
        batch.mailbox().hand.note_unchecked(&PreemptGuard::new());
    }
    worker.batch.store(rest.as_ptr(), Ordering::Relaxed);
    let here = PreemptGuard::new();
    worker.leave_hand();
    Worker::statistics(&here).detached_behaviours.bump();
    Some(suspended)
}

/// The rest of an activation whose batch was split: its envelope, the side queue, the actor's return.
pub(super) fn finish_detached(batch: NonNull<Batch>) -> Step {
    // SAFETY: a split batch is its activation's alone.
    let split = unsafe { batch.as_ref() };
    let tally = &split.tally;
    let Some(held) = split.held() else { return Step::Done };
    // SAFETY: the envelope's head stays readable as long as this activation shares the segment.
    let (cell, word) = unsafe { (held.as_ref().cell, held.as_ref().word) };
    let mut ended = !split.holds_actor() || split.has_ended_actor();
    if let Some(envelope) = split.undelivered() {
        if split.holds_actor() {
            ended = deliver_one(envelope, split);
        } else {
            // SAFETY: not delivered yet, and the batch is past it when this is done.
            unsafe { delivery::drop_letter(envelope, tally) };
        }
    }
    // Here and below, where something changes hands: this must not be killed in between.
    let here = PreemptGuard::new();
    if let Some(segment) = split.segment() {
        split.finish();
        release(segment);
    }
    drop(here);
    while !ended {
        let here = PreemptGuard::new();
        match side_queue::take_or_reattach(cell, word) {
            Next::Reattached => {
                split.note_given_back();
                break;
            }
            Next::OutOfMemory => {
                drop(here);
                crate::arch::cpu::relax();
            }
            Next::Deliver(gulp, messages) => {
                split.begin_drain(gulp, messages);
                drop(here);
                ended = drain(split);
            }
        }
    }
    let here = PreemptGuard::new();
    // SAFETY: the executor lives until the suspended behaviour has ended.
    account::note(unsafe { ExecutorState::of(split.mailbox()) }, tally, &here);
    Step::Done
}

fn release(segment: NonNull<Segment>) {
    // SAFETY: the caller has shared it until now, and nothing in it is its any more.
    unsafe {
        if segment.as_ref().release() {
            Segment::free(segment);
        }
    }
}

/// Delivers one envelope to an actor that this activation holds. Whether the actor has ended.
fn deliver_one(envelope: NonNull<Envelope>, batch: &Batch) -> bool {
    let tally = &batch.tally;
    // SAFETY: not delivered yet, and the actor is held by this activation.
    let (cell, word) = unsafe { (envelope.as_ref().cell, envelope.as_ref().word) };
    let metered = Metered::begin(cell);
    batch.begin_message();
    // SAFETY: as above.
    let result = unsafe { Envelope::deliver(envelope) };
    metered.count();
    tally.add_handled(1);
    if result & OUTCOME_MASK == 0 {
        return false;
    }
    delivery::end_actor(cell, word, result, tally);
    true
}

/// Delivers what was in the side queue. Whether the actor has ended; what came after that was dropped, in the way of a worker, which may be
/// preempted in between.
fn drain(batch: &Batch) -> bool {
    let mut ended = false;
    while let Some(segment) = batch.segment() {
        while let Some(envelope) = batch.current() {
            // SAFETY: measuring changes nothing; the chain was taken from the side queue.
            let bytes = unsafe { Envelope::measure(envelope) };
            if ended {
                batch.begin_message();
                // SAFETY: not delivered, and the batch is past it when this is done.
                unsafe { delivery::drop_letter(envelope, &batch.tally) };
            } else {
                ended = deliver_one(envelope, batch);
            }
            batch.advance_drained(envelope, bytes);
        }
        let _here = PreemptGuard::new();
        batch.finish();
        // SAFETY: the segment is this activation's alone, and everything in it was delivered.
        let next = unsafe {
            let next = NonNull::new(segment.as_ref().next);
            Segment::free(segment);
            next
        };
        if let Some(next) = next {
            // SAFETY: the chain is this activation's.
            unsafe { batch.set_place(next, Segment::enter(next), Segment::used_end(next)) };
        }
    }
    ended
}

/// Gives back what is left of a side queue's chain, because the activation has crashed: the mailbox drops it.
fn give_rest_back(batch: &Batch, first: NonNull<Segment>) {
    let _here = PreemptGuard::new();
    batch.finish();
    // SAFETY: the chain is the activation's, and what begins at its position was not delivered. A behaviour of the executor is suspended
    // until this has come to its end.
    unsafe {
        executor_state::give_back(batch.mailbox(), Gulp { first, head: batch.position() }, batch.undrained())
    };
}

/// Notes the message that the crashed behaviour was handling, if it was.
fn note_in_hand(split: &Batch) {
    // Not drained yet, it is the one that it was split at, wherever the position is by now.
    let in_hand = if split.drains() { split.begun() } else { split.held() };
    if let Some(envelope) = in_hand.filter(|_| split.segment().is_some()) {
        // SAFETY: measuring changes nothing; the segment is the activation's still, and holds as many bytes.
        unsafe { orphans::note(envelope.cast().as_ptr(), Envelope::measure(envelope)) };
    }
}

/// Gives back what an activation had in hand whose behaviour has crashed.
///
/// # Safety
/// The activation is gone, and the batch was split.
unsafe fn give_back(batch: NonNull<Batch>) {
    // SAFETY: by contract nobody else uses it.
    let split = unsafe { batch.as_ref() };
    if let Some(segment) = split.segment() {
        if split.drains() {
            if let Some(envelope) = split.begun() {
                // The one that crashed is gone already.
                // SAFETY: measuring changes nothing.
                unsafe { split.advance_drained(envelope, Envelope::measure(envelope)) };
            }
            give_rest_back(split, segment);
        } else {
            release(segment);
        }
    }
}
