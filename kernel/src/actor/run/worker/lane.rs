//! The lane: one batch for mail of several mailboxes that rest in a worker's hand.
//!
//! Where lone messages follow one another, each is a batch of its own, and most of what it costs is not its delivery. So after a while the worker
//! opens the *lane*: its batch is no one mailbox's from then on, and the gates of the mailboxes that rest in its hand lead to the end of that.
//! A message from one to another is appended as to any batch, and delivered as any in it; neither the mailbox nor the run list is
//! touched.
//!
//! - *The lane is the worker's batch*, or there is none, and everything is as if there never were any.
//! - *A mailbox in the lane has nothing elsewhere in hand.* It rests, and its own segment is empty, and has room for all that fits into the lane.
//! - *Whatever else is to happen settles the lane first* ([`Worker::settle`]): the batch is to be cut or split, its behaviour has crashed, the
//!   turn ends, what is in hand is to be given away. Then the lane becomes an ordinary batch, of the mailbox whose envelope is being delivered, or comes
//!   next, and ends with that one. What is behind that goes into the hands of its mailboxes, in order, which are listed; what is of
//!   the batch's own mailbox follows it. From there on it is known what is to be done, and there is no lane.
//! - It is no longer than a batch may grow. If there is no room behind what it has, the mailbox that is sent to [leaves](leave_lane) it: at once,
//!   if nothing but what is being delivered is in the lane, and that is another's; otherwise the lane is settled.
//! - When all of it was delivered it goes on with the one mailbox in the run list, if there is no other and nothing else waits; so a chain of lone
//!   messages goes on for as long as the turn. Otherwise it is closed.
//!
//! The interrupt settles it wherever preemption is enabled: code in the middle of an append begins that anew (`arch/aarch64/append.rs`).

use core::cell::Cell;
use core::ptr::{self, NonNull};

use super::account::note_at;
use super::{Private, Worker};
use crate::actor::mail::list::{Resting, Waiting};
use crate::actor::mail::mailbox::FIRST_SEGMENT_BYTES;
use crate::actor::mail::{Envelope, Mailbox, Segment};
use crate::actor::run::batch::Batch;
use crate::actor::run::delivery::{self, Delivered};
use crate::arch::atomic::Ordering;
use crate::sched;
use crate::stats;
use crate::sync::PreemptGuard;

/// Among so many batches of one message one is looked at: whether it is all that waits.
pub(super) const LOOKED_AT: u64 = 8;

/// A lane with fewer messages than this was not worth it.
const WORTH_IT: u64 = 64;

/// So many looks at most must have found nothing else in succession before the lane is opened.
const MOST_LOOKS: u32 = 64;

/// How a worker's lane is used. Its own turn's.
pub(super) struct Lane {
    /// Where it will lie.
    segment: Cell<Option<NonNull<Segment>>>,
    /// Looks that have found nothing else in succession.
    looks: Cell<u32>,
    /// How many are needed.
    needed: Cell<u32>,
}

impl Lane {
    pub(super) const fn new() -> Self {
        Self { segment: Cell::new(None), looks: Cell::new(0), needed: Cell::new(1) }
    }

    /// A lane has ended after so many messages, or was settled. If that happens early again and again, it is opened less often; a long one
    /// takes back one that was short.
    fn judge(&self, messages: u64) {
        let needed = self.needed.get();
        let needed = if messages < WORTH_IT { (2 * needed).min(MOST_LOOKS) } else { (needed / 2).max(1) };
        self.needed.set(needed);
        self.looks.set(0);
    }

    /// Frees what it has.
    pub(super) fn end(&self) {
        if let Some(segment) = self.segment.take() {
            // SAFETY: empty, and nobody else has it.
            unsafe { Segment::free(segment) };
        }
    }
}

/// What became of the lane.
pub(super) enum AfterLane {
    /// There was none, or all of it was delivered.
    Over(PreemptGuard),
    /// It was settled: a batch is in hand, or was split since. So many messages of it are not counted.
    Settled { uncounted: u64 },
}

impl Worker {
    /// Some lone messages have been delivered one after the other: opens the lane and delivers it, if that seems to go on. In the
    /// worker's turn, without a batch.
    #[cold]
    #[inline(never)]
    pub(super) fn run_lane(
        &self,
        private: &Private,
        batch: &Batch,
        budget: &mut u64,
        mut here: PreemptGuard,
    ) -> AfterLane {
        if !self.is_alone(private, *budget) {
            private.lane.looks.set(0);
            return AfterLane::Over(here);
        }
        let looks = private.lane.looks.get() + 1;
        private.lane.looks.set(looks);
        if looks < private.lane.needed.get() || !self.open(private, batch, &here) {
            return AfterLane::Over(here);
        }
        let opened_with = *budget;
        let mut began_with = opened_with;
        loop {
            drop(here);
            self.share();
            // From here to `disarm` the interrupt may settle it, and split or cut what it is then.
            batch.arm();
            // SAFETY: the batch is this activation's.
            let (delivered, left) = unsafe { delivery::deliver(batch, *budget) };
            *budget = left;
            here = PreemptGuard::new();
            batch.disarm();
            if batch.is_lane() && delivered == Delivered::All && batch.current().is_none() {
                self.count_batch((began_with - left) as u32);
                note_at(&self.executor, &batch.tally, self.statistics, &here);
                began_with = left;
                if self.is_alone(private, left) && self.refill(private, batch, &here) {
                    continue;
                }
            }
            // If it was split it may not be the worker's any more.
            if !batch.was_changed() {
                private.lane.judge(opened_with - left);
            }
            if batch.is_lane() {
                self.settle(&here);
            }
            if !batch.was_changed() && batch.segment().is_none() {
                if began_with > left {
                    self.count_batch((began_with - left) as u32);
                }
                return AfterLane::Over(here);
            }
            return AfterLane::Settled { uncounted: began_with - left };
        }
    }

    /// Whether nothing waits but one mailbox in the run list with nothing but plain mail that was checked, and the turn may go on.
    fn is_alone(&self, private: &Private, budget: u64) -> bool {
        // Relaxed: as in `next_listed`.
        let others = private.round.get() | self.hints.load(Ordering::Relaxed);
        let may_go_on = others == 0 && budget > 0 && !sched::is_exhausted();
        let next = self.run_list.sole().and_then(Waiting::held).filter(|_| may_go_on);
        // How long mail waits is told for mailboxes only.
        next.is_some_and(|mailbox| {
            mailbox.hand.is_plain_and_checked()
                && mailbox.waiting() == 0
                && !mailbox.is_tried()
                && !stats::timing()
        })
    }

    /// Opens the lane, with what the one mailbox has that waits. Whether there was memory, and room.
    fn open(&self, private: &Private, batch: &Batch, here: &PreemptGuard) -> bool {
        let segment = private.lane.segment.take().or_else(|| Segment::new(self.executor.segment_bytes));
        private.lane.segment.set(segment);
        if segment.is_none() || !self.refill(private, batch, here) {
            return false;
        }
        let lane_end = batch.extent().end_cell();
        if let Some(segment) = segment {
            let limit = self.limit(segment);
            for Resting(mailbox) in self.resting.iter() {
                if mailbox.hand.may_enter_lane(self.lane_bytes(segment), here) {
                    // SAFETY: at rest in this worker's hand. The lane's end lives as long as the batch, and it is settled before that is
                    // anything else.
                    unsafe { mailbox.hand.enter_lane(lane_end, limit) };
                }
            }
        }
        true
    }

    /// The lane goes on from its beginning, with what the one mailbox has that waits: whether there is room for that.
    fn refill(&self, private: &Private, batch: &Batch, here: &PreemptGuard) -> bool {
        let segment = batch.segment().filter(|_| batch.is_lane()).or(private.lane.segment.get());
        let next = self.run_list.first().and_then(Waiting::held);
        let (Some(segment), Some(mailbox)) = (segment, next) else { return false };
        let bytes = self.lane_bytes(segment);
        // SAFETY: the list is this worker's, and so are the mailboxes in it, with plain mail that was checked; nothing is in the lane.
        let Some((end, is_first)) = (unsafe { mailbox.hand.pour(Segment::begin(segment), bytes) }) else {
            return false;
        };
        self.run_list.pop();
        if is_first {
            self.resting.push(Resting(mailbox));
        }
        // As in `begin_next_listed`.
        private.pass_end.set(super::End::NONE);
        batch.become_lane(segment, end);
        if mailbox.hand.may_enter_lane(bytes, here) {
            // SAFETY: as in `open`.
            unsafe { mailbox.hand.enter_lane(batch.extent().end_cell(), self.limit(segment)) };
        }
        true
    }

    /// How much goes into the lane, in this segment.
    fn lane_bytes(&self, segment: NonNull<Segment>) -> usize {
        // SAFETY: the lane's.
        unsafe { segment.as_ref() }.capacity_bytes().min(FIRST_SEGMENT_BYTES)
    }

    fn limit(&self, segment: NonNull<Segment>) -> *mut u8 {
        Segment::begin(segment).as_ptr().wrapping_add(self.lane_bytes(segment))
    }

    /// Whether more waits in the lane than what is being delivered, or next.
    pub(super) fn has_more_in_lane(&self) -> bool {
        let batch = self.batch();
        batch.is_lane() && batch.current().is_some_and(|envelope| behind(envelope) < batch.end().cast())
    }

    /// Ends the lane, if there is one: see above. On the worker's core within its turn, or instead of what was left of it.
    pub(in crate::actor::run) fn settle(&self, here: &PreemptGuard) {
        if self.batch().is_lane() {
            self.settle_lane(here);
        }
    }

    #[cold]
    #[inline(never)]
    fn settle_lane(&self, here: &PreemptGuard) {
        let batch = self.batch();
        // SAFETY: the worker's turn, or what interrupts it on its core with preemption enabled, or comes after it.
        let private = unsafe { self.private() };
        for Resting(mailbox) in self.resting.iter() {
            mailbox.hand.leave_lane(here);
        }
        let Some(mut segment) = batch.segment() else { return };
        let Some(current) = batch.current() else {
            // The loop finds that all was delivered.
            return batch.end_lane(None);
        };
        private.lane.segment.set(None);
        let (begin, end) = (behind(current), batch.end().cast());
        // SAFETY: being delivered, or next; its head is never changed.
        let mailbox = unsafe { current.as_ref() }.mailbox();
        // SAFETY: the segment is the batch's, and its mailbox was in the lane and rests now; what is behind the current envelope is moved away.
        unsafe {
            segment.as_mut().set_end(begin.cast());
            mailbox.hand.follow_lane(segment);
        }
        private.is_listed.set(true);
        let mut next = begin;
        while next < end {
            // SAFETY: written, and not delivered.
            unsafe { sort(next, batch.is_unchecked(), here) };
            next = behind(next);
        }
        batch.end_lane(Some((mailbox, begin.cast())));
    }
}

/// Where the next envelope lies, or they end.
fn behind(envelope: NonNull<Envelope>) -> NonNull<Envelope> {
    // SAFETY: written; measuring changes nothing, and behind it there is another, or the end.
    unsafe { envelope.byte_add(Envelope::measure(envelope)) }
}

/// Puts an envelope of the lane's behind what its mailbox has in hand, which is listed if it rests.
///
/// # Safety
/// The envelope was not delivered, and is not looked at again there. Its mailbox is in hand on this core, and was in the lane.
unsafe fn sort(envelope: NonNull<Envelope>, is_unchecked: bool, here: &PreemptGuard) {
    // SAFETY: by contract; measuring changes nothing.
    let (mailbox, bytes) = unsafe { (envelope.as_ref().mailbox(), Envelope::measure(envelope)) };
    let place = mailbox.hand.reserve_at_rest(bytes, here).inspect(|_| mailbox.hand.wake(mailbox, here));
    let Some(place) = place.or_else(|| mailbox.hand.reserve(bytes, here)) else {
        debug_assert!(false, "the lane has more than a segment holds");
        return;
    };
    if is_unchecked {
        mailbox.hand.note_unchecked(here);
    }
    // SAFETY: so many bytes were reserved, and the envelope may be moved, because whoever has it has its message.
    unsafe { place.copy_from_nonoverlapping(envelope.cast(), bytes) };
}

/// Mail for `mailbox` that does not go into the lane is to go elsewhere into its hand, or its queue: if it is in the lane of the worker on this core, it rests
/// again afterwards, or waits in hand with what it had there.
#[inline(always)]
pub(crate) fn leave_lane(mailbox: &Mailbox, here: &PreemptGuard) {
    if mailbox.hand.is_in_lane(here) {
        leave(mailbox, here);
    }
}

#[cold]
#[inline(never)]
fn leave(mailbox: &Mailbox, here: &PreemptGuard) {
    // SAFETY: it is in the hand of a worker whose turn runs on this core, so its executor runs.
    let executor = unsafe { super::ExecutorState::of(mailbox) };
    let worker = sched::core_here(here).and_then(|core| executor.workers().get(core.index()));
    let Some(worker) = worker else { return };
    let is_apart = worker.batch().current().is_none_or(|current| {
        // SAFETY: being delivered, or next; its head is never changed.
        let holder = unsafe { current.as_ref() }.mailbox();
        !worker.has_more_in_lane() && !ptr::eq(holder, mailbox)
    });
    if is_apart {
        mailbox.hand.leave_lane(here);
    } else {
        worker.settle(here);
    }
}
