//! Where the lane goes on when it is full, and what happens to a message for which there is no room there. In a behaviour of the worker's turn, with
//! preemption disabled.

use core::ptr::{self, NonNull};

use super::segments::{LANE_BYTES, RESERVE_BYTES};
use super::{Mark, Private, Worker, behind};
use crate::actor::mail::{Mailbox, Segment};
use crate::actor::run::batch::Batch;
use crate::actor::run::executor_state::ExecutorState;
use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::sched;
use crate::sync::PreemptGuard;

/// With less room elsewhere the lane is full.
const LEAST_BYTES: usize = LANE_BYTES / 32;

/// Where mail in the lane ends, and has room.
pub(super) struct Room<'a> {
    /// Where it ends, or null if nothing is there.
    pub end_cell: &'a AtomicPtr<u8>,
    begin: *mut u8,
    pub limit: *mut u8,
}

impl Worker {
    /// Whether more waits in the lane than what is being delivered, or next.
    pub(in crate::actor::run::worker) fn has_more_in_lane(&self) -> bool {
        let batch = self.batch();
        batch.is_lane() && (self.goes_on_elsewhere() || self.is_behind_current(batch))
    }

    fn is_behind_current(&self, batch: &Batch) -> bool {
        batch.current_of_whole().is_some_and(|envelope| behind(envelope) < batch.end_of_whole().cast())
    }

    /// Whether something lies in the other segment already.
    pub(super) fn goes_on_elsewhere(&self) -> bool {
        // SAFETY: the worker's turn, or what interrupts it on its core with preemption enabled.
        let private = unsafe { self.private() };
        !private.lane.segments.other_end.load(Ordering::Relaxed).is_null()
    }

    /// Where what waits in the lane ends, if it is open. On the worker's core, where its turn was interrupted with preemption enabled.
    pub(in crate::actor::run::worker) fn lane_mark(&self) -> Option<Mark> {
        let batch = self.batch();
        if !batch.is_lane() {
            return None;
        }
        // SAFETY: what interrupts the worker's turn on its core with preemption enabled.
        let lane = &unsafe { self.private() }.lane;
        let elsewhere = NonNull::new(lane.segments.other_end.load(Ordering::Relaxed));
        Some(Mark {
            begun: lane.begun.get().wrapping_add(u64::from(elsewhere.is_some())),
            not_end: !elsewhere.unwrap_or_else(|| batch.end_of_whole()).addr().get(),
            more_listed: self.is_more_listed(),
        })
    }

    /// Whether a lane is open, and all was handled that waited there when that was its mark. As there.
    pub(in crate::actor::run::worker) fn lane_has_passed(&self, mark: Mark) -> bool {
        // Otherwise there may be no batch.
        if !self.batch().is_lane() {
            return false;
        }
        // SAFETY: as there.
        let begun = unsafe { self.private() }.lane.begun.get();
        let has_passed = begun > mark.begun
            || (begun == mark.begun && self.batch().position().addr().get() >= !mark.not_end);
        has_passed && !(mark.more_listed && self.is_more_listed())
    }

    fn is_more_listed(&self) -> bool {
        self.run_list.first().is_some_and(|entry| entry.held().is_some())
    }

    /// How much waits in the lane.
    pub(super) fn waiting_bytes(&self, batch: &Batch) -> usize {
        let here = batch.end().as_ptr().addr().saturating_sub(batch.position().as_ptr().addr());
        let elsewhere = self.room_elsewhere(batch).map_or(0, |room| {
            let end = room.end_cell.load(Ordering::Relaxed);
            if end.is_null() { 0 } else { end.addr() - room.begin.addr() }
        });
        here + elsewhere
    }

    /// Where what is in the other segment ends, or will, and its room: no more waits in the lane than one of them holds.
    pub(super) fn room_elsewhere(&self, batch: &Batch) -> Option<Room<'_>> {
        // SAFETY: on the worker's core within its turn, with preemption disabled.
        let segments = &unsafe { self.private() }.lane.segments;
        let waiting = batch.end().as_ptr().addr().saturating_sub(batch.position().as_ptr().addr());
        let begin = Segment::begin(segments.other()?).as_ptr();
        Some(Room { end_cell: &segments.other_end, begin, limit: begin.wrapping_add(LANE_BYTES - waiting) })
    }

    /// So much room in the lane, in its other segment. Whether there is.
    fn go_on_elsewhere(&self, bytes: usize) -> bool {
        let batch = self.batch();
        let room = self.room_elsewhere(batch).filter(|_| !batch.was_changed());
        let Some(Room { end_cell, begin, limit }) = room else { return false };
        let end = end_cell.load(Ordering::Relaxed);
        let end = if end.is_null() { begin } else { end };
        // For one message alone it is not worth going through the mailboxes.
        if end.wrapping_add(bytes.max(LEAST_BYTES)) > limit {
            return false;
        }
        end_cell.store(end, Ordering::Relaxed);
        for mailbox in self.of_lane() {
            // SAFETY: of the lane, which is not closed. The end lives as long as the worker, and leads into the segment.
            unsafe { mailbox.hand.move_in_lane(end_cell, limit) };
        }
        true
    }

    /// All that lay in one segment was delivered: the lane goes on in the other one, if anything is there. Whether it is. In the worker's turn.
    pub(super) fn turn_over(&self, private: &Private, batch: &Batch) -> bool {
        private.lane.note_begun();
        let Some((segment, end)) = private.lane.segments.turn_over() else {
            // From its beginning. Nothing leads there but the end.
            let Some(segment) = batch.segment() else { return false };
            batch.set_place(segment, Segment::begin(segment), Segment::begin(segment));
            return false;
        };
        batch.set_place(segment, Segment::begin(segment), end);
        for mailbox in self.of_lane() {
            // SAFETY: of the lane, which is not closed. The end lives as long as the batch, and it is closed before that is anything else.
            unsafe { mailbox.hand.move_in_lane(batch.extent().end_cell(), super::segments::limit(segment)) };
        }
        true
    }

    /// An empty segment of the lane, if that is closed and all of it was sorted: it cannot be opened before there is memory for another one. In the worker's turn, with preemption
    /// disabled.
    #[cold]
    pub(in crate::actor::run::worker) fn of_unused_lane(
        &self,
        private: &Private,
    ) -> Option<NonNull<Segment>> {
        if self.batch().is_lane() || self.has_unsorted() {
            None
        } else {
            private.lane.segments.give_of_reserve()
        }
    }

    /// Mail for `mailbox`, which is in the lane, does not go there.
    #[cold]
    #[inline(never)]
    fn let_leave(&self, mailbox: &Mailbox, here: &PreemptGuard) {
        // Though it be cut, and the loop at its end.
        let is_current = self.batch().current_of_whole().is_some_and(|current| {
            // SAFETY: being delivered, or next; its head is never changed.
            ptr::eq(unsafe { current.as_ref() }.mailbox(), mailbox)
        });
        if !is_current && !self.has_more_in_lane() {
            mailbox.hand.leave_lane(here);
        } else {
            self.settle(here);
        }
    }
}

/// The worker in whose lane a mailbox is, on this core.
fn worker_of<'a>(mailbox: &'a Mailbox, here: &PreemptGuard) -> Option<&'a Worker> {
    // SAFETY: it is in the hand of a worker whose turn runs on this core, so its executor runs.
    let executor = unsafe { ExecutorState::of(mailbox) };
    sched::core_here(here).and_then(|core| executor.workers().get(core.index())).map(|worker| &**worker)
}

/// Mail for `mailbox` that does not go into the lane is to go elsewhere into its hand, or its queue: if it is in the lane of the worker on this core, it rests
/// again afterwards, or its gate is closed.
#[inline(always)]
pub(crate) fn leave_lane(mailbox: &Mailbox, here: &PreemptGuard) {
    if mailbox.hand.is_in_lane(here)
        && let Some(worker) = worker_of(mailbox, here)
    {
        worker.let_leave(mailbox, here);
    }
}

/// So much room for `mailbox`, if that is in the lane of the worker on this core: whether there is by now. What comes there was checked.
#[inline(never)]
pub(crate) fn make_room_in_lane(mailbox: &Mailbox, bytes: usize, here: &PreemptGuard) -> bool {
    mailbox.hand.is_in_lane(here)
        && worker_of(mailbox, here).is_some_and(|worker| worker.go_on_elsewhere(bytes))
}

/// An empty segment with room for `bytes` that the worker of that executor's on this core keeps for something else, in a behaviour of its turn: nobody else uses what it has meanwhile.
/// Where the lane is closed and all of it was sorted, one of that. Else, or if none is left, the worker's spare: it has another one when its batch is over, or the lane, unless a
/// suspended behaviour still reads there.
#[cold]
pub(crate) fn take_of_worker(
    mailbox: &Mailbox,
    bytes: usize,
    here: &PreemptGuard,
) -> Option<NonNull<Segment>> {
    // SAFETY: the caller has the mailbox's lock, and has found it open.
    let worker = unsafe { ExecutorState::of(mailbox) }.worker_here(here)?;
    let batch = worker.batch();
    if !batch.is_armed() {
        return None;
    }
    // SAFETY: on the worker's core within its turn, in the middle of a behaviour, with preemption disabled.
    let private = unsafe { worker.private() };
    if bytes <= RESERVE_BYTES
        && let Some(segment) = worker.of_unused_lane(private)
    {
        return Some(segment);
    }
    // SAFETY: the batch's, which is alive.
    let is_restored = batch.segment().is_some_and(|segment| unsafe { segment.as_ref() }.is_read_by_one());
    // SAFETY: the worker's, which is alive.
    let has_room = |segment: &NonNull<Segment>| unsafe { segment.as_ref() }.capacity_bytes() >= bytes;
    let spare = private.spare.get().filter(|segment| is_restored && has_room(segment))?;
    private.spare.set(None);
    Some(spare)
}
