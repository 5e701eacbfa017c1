//! A message that a core's loop sends to a worker which waits on that very core: it becomes the worker's batch at once.
//!
//! So comes what timers send, and signals. Through the queue the worker is told which of its mailboxes has mail, its turn looks for that, and gulps it
//! with another look at the mailbox's lock. Between an interrupt and a behaviour that counts.
//!
//! - The loop is between two turns, on the worker's core, so the worker is in no turn, and all that its own turns use may be used here. (On the fresh stack of an
//!   interrupt's end, where the turn that was met is still to be written down, nothing is sent.)
//! - A batch that waits for a turn is nothing new: so does the rest of a long one. The turn begins with it. Others see that the worker has a batch, and that its
//!   mailbox is being processed. So whoever asks whether anything is left finds it, and what is sent meanwhile, on whatever core, is as beside any other batch.
//! - The mailbox is taken in hand under its lock, as for a gulp, and only while nothing waits in its queue, so messages keep their order (model
//!   `in_hand::directly_or_gulped`).
//! - No thief finds the message. So it is done only for an urgent worker, and, if there are others who might handle the mailbox, only where that worker has the
//!   next turn, as far as can be seen: something more urgent may still come first. What was handed over to be timed goes the usual way, which does that.
//! - An executor that was asked to stop is left alone: its worker may have ended. One that is asked later has the worker give its batch back.

use core::ptr::NonNull;

use super::Worker;
use crate::actor::mail::mailbox::Taken;
use crate::actor::mail::{Gulp, Mailbox, Segment};
use crate::actor::run::executor_state::ExecutorState;
use crate::actor::storage::{CellRef, Word};
use crate::sched;
use crate::sync::PreemptGuard;
use crate::trace::{self, Kind};

/// A message that is being made the batch of a worker that waits: to be written, and then to [go](Self::go).
#[must_use]
pub(crate) struct Direct<'a> {
    worker: &'a Worker,
    place: NonNull<u8>,
    here: PreemptGuard,
}

impl Direct<'_> {
    /// Takes a mailbox in hand for a message of `bytes` for the actor that has this word in its cell, if the caller is the loop on the core of its worker, and
    /// that waits. The message must be written, and it must go.
    #[inline(never)]
    pub(crate) fn begin(
        mailbox: &'static Mailbox,
        bytes: usize,
        actor: (CellRef, Word),
        here: PreemptGuard,
    ) -> Option<Self> {
        // Hints: the lock decides.
        if !mailbox.is_urgent() || mailbox.is_being_processed() || mailbox.is_tried() {
            return None;
        }
        let core = sched::loop_here(&here)?;
        if mailbox.core() != core {
            return None;
        }
        let mut inside = mailbox.inside.lock_here(here);
        if inside.closed {
            return None;
        }
        // SAFETY: the mailbox is open, and stays so while the lock is held. After that the executor stays because this worker has not ended: for that it would
        // have a turn on this core.
        let executor = unsafe { ExecutorState::of(mailbox) };
        let worker = &**executor.workers().get(core.index())?;
        if usize::from(mailbox.place().worker) != worker.index || !worker.may_be_given_a_batch() {
            return None;
        }
        if !mailbox.is_fixed() && !worker.would_be_next(inside.preempt()) {
            return None;
        }
        let mut first = mailbox.take_empty(&mut inside, bytes, actor)?;
        let here = inside.unlock();
        trace::note_if_on(Kind::Sent, core::ptr::from_ref(mailbox).addr() as u64, 0, None);
        let place = Segment::begin(first);
        // SAFETY: the segment is the caller's, and has room for so much.
        unsafe { first.as_mut().set_end(place.add(bytes)) };
        let taken = Taken { gulp: Gulp { first, head: place }, messages: 1, is_unchecked: false };
        worker.batch().begin(mailbox, &taken, &here);
        worker.set_in_batch(true);
        worker.was_given_batch.set(true);
        Some(Self { worker, place, here })
    }

    /// Where the message is to be written.
    #[inline(always)]
    pub(crate) fn place(&self) -> NonNull<u8> {
        self.place
    }

    /// The message was written: its worker has a turn.
    #[inline(always)]
    pub(crate) fn go(self) {
        self.worker.go_from_loop(&self.here);
    }
}

impl Worker {
    /// Whether it waits, and has nothing in hand. In the loop of its core, between two turns.
    #[inline(always)]
    fn may_be_given_a_batch(&self) -> bool {
        self.is_idle()
            && self.executor.is_open()
            && !self.owes.get()
            && !self.run_list.any()
            && !self.resting.any()
            && self.batch().segment().is_none()
    }

    /// Whether its turn would be the next on its core, were it woken now in the loop there.
    fn would_be_next(&self, here: &PreemptGuard) -> bool {
        self.process().is_some_and(|process| sched::would_be_next(process, here))
    }

    /// As [`Self::wake_if_idle`], in the loop of its core. Another core may have woken it meanwhile, for something else.
    #[inline(never)]
    fn go_from_loop(&self, here: &PreemptGuard) {
        if self.take_idle()
            && let Some(process) = self.process()
        {
            sched::wake_from_loop(process, here);
        }
    }

    /// Its turn begins with a batch: counts it as gulped, if it came so and not from a turn before.
    #[inline(always)]
    pub(super) fn count_given_batch(&self, mailbox: &Mailbox) {
        if self.was_given_batch.replace(false) {
            self.count_gulp(mailbox, 1);
        }
    }
}
