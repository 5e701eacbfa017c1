//! The lane: one batch for mail of several mailboxes that rest in a worker's hand.
//!
//! Where mail comes in small batches, most of what a batch costs is not its delivery. So after a while the worker
//! opens the *lane*: its batch is no one mailbox's from then on, and the gates of the mailboxes that rest in its hand lead to the end of that.
//! A message from one to another is appended as to any batch, and delivered as any in it; neither the mailbox nor the run list is
//! touched.
//!
//! - *The lane is the worker's batch*, or there is none, and everything is as if there never were any.
//! - *A mailbox in the lane has nothing elsewhere in hand.* It rests, and its own segment is empty.
//! - *Whatever else is to happen closes the lane first* ([`close`]): the batch is to be split, its behaviour has crashed, the
//!   turn ends, what is in hand is to be given away. Then the lane becomes an ordinary batch, of the mailbox whose envelope is being delivered, or comes
//!   next, and ends with that one. What is behind that is *sorted* into the hands of its mailboxes, in order, a few at a time, before anything
//!   else is done to those.
//! - It lies in one of two segments, and goes on in the other one where the first is full ([`room`]). No more than one of them holds waits there, and for that there is
//!   always room elsewhere ([`segments`]). If there is none in the lane, the mailbox that is sent to leaves it, or it is closed.
//! - When all of it was delivered it goes on with what is in the run list, if that fits in and nothing else waits; so it goes on for as long as the
//!   turn. Otherwise it is closed.
//! - Nobody else finds what waits there. So while a core is idle, which could take some of it, the lane is for short behaviours only.
//!
//! The interrupt closes it wherever preemption is enabled: code in the middle of an append begins that anew (`arch/aarch64/append.rs`).

mod close;
mod gather;
mod room;
mod segments;

use core::cell::Cell;
use core::ptr::NonNull;

use self::close::Unsorted;
pub(crate) use self::room::{leave_lane, make_room_in_lane, take_of_worker};
use self::segments::Segments;
use super::account::note_at;
use super::{Private, Worker};
use crate::actor::mail::list::Resting;
use crate::actor::mail::mailbox::FIRST_SEGMENT_BYTES;
use crate::actor::mail::{Envelope, Mailbox, Segment};
use crate::actor::run::batch::Batch;
use crate::actor::run::delivery::{self, Delivered};
use crate::arch::clock;
use crate::sched::{self, Setting};
use crate::stats;
use crate::sync::PreemptGuard;

/// A batch with fewer messages is short.
pub(super) const SHORT: u64 = 128;

/// Among so many short batches one is looked at: whether all that waits fits into the lane.
pub(super) const LOOKED_AT: u64 = 2;

/// How many mailboxes are in the lane, at most: the interrupt goes through them.
const MOST_MAILBOXES: usize = 32;

/// So much of one mailbox's goes into the lane, at most: it is moved with preemption disabled.
const MOST_POURED_BYTES: usize = 6 * FIRST_SEGMENT_BYTES;

/// A lane with fewer messages than this was not worth it, where one mailbox waited when it was opened.
const WORTH_IT: u64 = 64;

/// Where several did.
const WORTH_IT_FOR_SEVERAL: u64 = 512;

/// It is not opened before so many times [`LOOKED_AT`], at most.
const MOST_PAUSES: u32 = 256;

/// So many messages are delivered in it between two looks at the clock, at most.
const MOST_BETWEEN_LOOKS: u64 = 256;

/// At this part of the time after which mail may leave mail from elsewhere comes into the lane; and while a core is idle, which could take some, all that waits in it must be
/// done in that time.
const PART_OF_WAIT: u64 = 2;

/// Between two looks less than this part of that time passes, or fewer messages are delivered.
const LOOKS: u64 = 4;

/// While a core is idle, each of so many behaviours may take an equal part of that time.
const FEWEST: u64 = 64;

/// How a worker's lane is used. Its own turn's, or of what interrupts that, with preemption disabled.
pub(super) struct Lane {
    segments: Segments,
    unsorted: Unsorted,
    /// Pauses since it was looked at.
    pauses: Cell<u32>,
    /// How many are needed.
    needed: Cell<u32>,
    /// How many messages are delivered until the next look at the clock.
    messages: Cell<u64>,
    /// When mail from elsewhere was last looked for, in clock ticks.
    gathered_at: Cell<u64>,
    /// How often the delivery has begun at the beginning of a segment.
    begun: Cell<u64>,
}

/// Where what waits in a lane ends, at one moment.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    /// What `begun` says when the delivery is in that segment.
    begun: u64,
    /// The complement of the address there: to the collector of what crashes leave this leads nowhere.
    not_end: usize,
    /// Something was in the run list besides, which comes into the lane later.
    more_listed: bool,
}

impl Lane {
    pub(super) const fn new() -> Self {
        Self {
            segments: Segments::new(),
            unsorted: Unsorted::new(),
            pauses: Cell::new(0),
            needed: Cell::new(1),
            messages: Cell::new(1),
            gathered_at: Cell::new(0),
            begun: Cell::new(0),
        }
    }

    /// [`LOOKED_AT`] batches were short: whether it is time for a look.
    #[inline(always)]
    pub(super) fn is_due(&self) -> bool {
        let pauses = self.pauses.get() + 1;
        let is_due = pauses >= self.needed.get();
        self.pauses.set(if is_due { 0 } else { pauses });
        is_due
    }

    fn note_begun(&self) {
        self.begun.set(self.begun.get().wrapping_add(1));
    }

    /// It was worth it, or not; a look that found that it cannot be opened was not. If that happens again and again, it is opened less often.
    fn judge(&self, was_worth_it: bool) {
        let needed = self.needed.get();
        self.needed.set(if was_worth_it { (needed / 2).max(1) } else { (2 * needed).min(MOST_PAUSES) });
    }

    /// So many messages took so long, of the time between gatherings.
    fn note_taken(&self, ticks: u64, between: u64) {
        let messages = self.messages.get();
        if ticks > between / LOOKS {
            self.messages.set((messages / 2).max(1));
        } else if ticks < between / (2 * LOOKS) {
            self.messages.set((messages * 2).min(MOST_BETWEEN_LOOKS));
        }
    }

    /// A segment that is done, and empty, may be the lane's again. Whether it is.
    pub(super) fn takes_back(&self, segment: NonNull<Segment>) -> bool {
        self.segments.take_back(segment)
    }

    /// Frees what it has.
    pub(super) fn end(&self) {
        self.segments.free();
    }
}

/// What became of the lane.
pub(super) enum AfterLane {
    /// There was none, or all of it was delivered.
    Over(PreemptGuard),
    /// It was closed: a batch is in hand, or was split since. So many messages of it are not counted.
    Settled { uncounted: u64 },
    /// The turn ends, with a batch in hand, or before all was sorted that was in the lane.
    Ends(PreemptGuard),
}

impl Worker {
    /// Short batches have been delivered one after the other: opens the lane and delivers it, if all that waits fits in. In the
    /// worker's turn, when all of its batch was delivered, and that one's mailbox rests.
    #[cold]
    #[inline(never)]
    pub(super) fn run_lane(
        &self,
        private: &Private,
        batch: &Batch,
        budget: &mut u64,
        here: PreemptGuard,
    ) -> AfterLane {
        let lane = &private.lane;
        // Its mailbox rests. What interrupts this finds none.
        batch.finish();
        let is_several = self.run_list.sole().is_none();
        let (mut here, is_open) = self.open(private, batch, *budget, here);
        if !is_open && !batch.is_lane() && batch.segment().is_none() && !lane.is_unsorted() {
            lane.judge(false);
            return AfterLane::Over(here);
        }
        let between = sched::setting_ticks(Setting::ShareWaitMicroseconds) / PART_OF_WAIT;
        let (mut messages, mut uncounted, mut is_slow) = (0, 0, false);
        while batch.is_lane() {
            drop(here);
            let (began, part) = (clock::now(), lane.messages.get().min(*budget));
            // From here to `disarm` the interrupt may close it, and split or cut what it is then.
            batch.arm();
            // SAFETY: the batch is this activation's.
            let (delivered, left) = unsafe { delivery::deliver(batch, part) };
            here = PreemptGuard::new();
            batch.disarm();
            let done = part - left;
            *budget -= done;
            messages += done;
            uncounted += done;
            if batch.is_split() {
                // It is not this worker's any more.
                return AfterLane::Settled { uncounted };
            }
            if self.mend_lane() || !batch.is_lane() || delivered == Delivered::Blocked {
                break;
            }
            let now = clock::now();
            let ticks = now.saturating_sub(began);
            lane.note_taken(ticks, between);
            is_slow = sched::some_core_is_idle() && self.is_slow(batch, ticks, done, between);
            if is_slow {
                break;
            }
            let is_over = delivered == Delivered::All && batch.current().is_none();
            let has_more = if is_over {
                self.count_batch(uncounted as u32);
                note_at(&self.executor, &batch.tally, self.statistics, &here);
                uncounted = 0;
                self.turn_over(private, batch)
            } else {
                true
            };
            let is_due = now.saturating_sub(lane.gathered_at.get()) >= between;
            if !has_more || is_due || *budget == 0 {
                // What waits for the end of the turn comes first.
                let is_all;
                (here, is_all) = self.go_on_with_others(private, batch, here);
                if !is_all {
                    break;
                }
            } else if self.run_list.any() && is_over {
                let is_all;
                (here, is_all) = self.refill(private, batch, here);
                if !is_all {
                    break;
                }
            }
            if *budget == 0 || sched::is_exhausted() || self.executor.is_stopping() {
                *budget = self.grant_more(true).unwrap_or(0);
            }
            if *budget == 0 || batch.current().is_none() {
                break;
            }
        }
        lane.judge(!is_slow && messages >= if is_several { WORTH_IT_FOR_SEVERAL } else { WORTH_IT });
        self.settle(&here);
        drop(here);
        self.sort_in_turn();
        here = PreemptGuard::new();
        let is_over = batch.segment().is_none() && !lane.is_unsorted();
        let goes_on = *budget > 0 && !lane.is_unsorted() && !sched::is_exhausted();
        if goes_on && !is_over {
            return AfterLane::Settled { uncounted };
        }
        if uncounted > 0 {
            self.count_batch(uncounted as u32);
        }
        if is_over {
            return AfterLane::Over(here);
        }
        // Cut after it was closed: the next turn is to deliver something.
        batch.mend();
        AfterLane::Ends(here)
    }

    /// Whether what waits in the lane would take too long, or its behaviours do, given that so many took so long. While a core is idle.
    fn is_slow(&self, batch: &Batch, ticks: u64, messages: u64, between: u64) -> bool {
        let waiting = (self.waiting_bytes(batch) / size_of::<Envelope>()) as u64;
        ticks * waiting.max(FEWEST) > between * messages.max(1)
    }

    /// Opens the lane, with what is in the run list, unless something else waits, there is no memory, or that is too much. Whether it is open; if something has
    /// interrupted this, a batch may be in hand then.
    fn open(
        &self,
        private: &Private,
        batch: &Batch,
        budget: u64,
        here: PreemptGuard,
    ) -> (PreemptGuard, bool) {
        // How long mail waits is told for mailboxes only.
        let may_open = |here: PreemptGuard| {
            let fits = || self.pourable().is_some_and(|bytes| bytes <= segments::LANE_BYTES * 7 / 8);
            let is_possible = self.run_list.any()
                && budget > 0
                && !sched::is_exhausted()
                && self.in_hand.get() <= MOST_MAILBOXES
                && !stats::timing()
                && !self.executor.is_stopping()
                && fits();
            (here, is_possible)
        };
        let (here, mut may) = may_open(here);
        let mut here = here;
        if may && !private.lane.segments.are_there() {
            drop(here);
            let are_there = private.lane.segments.make();
            if !are_there {
                // Each attempt is a shortage of memory, which others are asked to mend.
                private.lane.needed.set(MOST_PAUSES);
            }
            (here, may) = may_open(PreemptGuard::new());
            may &= are_there;
        }
        let Some(segment) = private.lane.segments.current().filter(|_| may) else { return (here, false) };
        batch.become_lane(segment, Segment::begin(segment));
        private.lane.note_begun();
        let limit = segments::limit(segment);
        for Resting(mailbox) in self.resting.iter() {
            if mailbox.hand.may_enter_lane(&here) {
                // SAFETY: at rest in this worker's hand. The lane's end lives as long as the batch, and it is closed before that is
                // anything else.
                unsafe { mailbox.hand.enter_lane(batch.extent().end_cell(), limit) };
            }
        }
        let (here, is_all) = self.refill(private, batch, here);
        if !is_all {
            return (here, false);
        }
        self.go_on_with_others(private, batch, here)
    }

    /// What has come from elsewhere goes into the lane. Whether all of it did, and the lane is open.
    fn go_on_with_others(
        &self,
        private: &Private,
        batch: &Batch,
        here: PreemptGuard,
    ) -> (PreemptGuard, bool) {
        private.lane.gathered_at.set(clock::now());
        let (here, is_all) = self.gather(private, batch, here);
        if !is_all {
            return (here, false);
        }
        self.refill(private, batch, here)
    }

    /// The mailboxes that belong to the lane, though it may be closed.
    fn of_lane(&self) -> impl Iterator<Item = &'static Mailbox> {
        self.resting.iter().map(|Resting(mailbox)| mailbox).filter(|mailbox| mailbox.hand.is_of_lane())
    }
}

/// Where the next envelope lies, or they end.
fn behind(envelope: NonNull<Envelope>) -> NonNull<Envelope> {
    // SAFETY: written; measuring changes nothing, and behind it there is another, or the end.
    unsafe { envelope.byte_add(Envelope::measure(envelope)) }
}
