//! Gulping a mailbox, and running the batch to its end.

use core::ptr::NonNull;

use super::account::{note, note_at};
use super::lane::{self, AfterLane};
use super::{Private, Worker};
use crate::actor::mail::mailbox::GulpResult;
use crate::actor::mail::{Following, Mailbox, Segment};
use crate::actor::run::batch::Batch;
use crate::actor::run::delivery::{self, Delivered};
use crate::actor::run::{detach, reclaim};
use crate::sched::Step;
use crate::stats::{self, WorkerStatistics};
use crate::sync::PreemptGuard;
use crate::trace::{self, Kind};

/// How the turn goes on after a batch.
pub(super) enum AfterBatch {
    /// The batch is done: with the next mailbox.
    GoOn,
    /// It ends so.
    Over(Step),
}

/// What a batch has come to the end of.
enum End {
    /// All that is in hand of its mailbox.
    All,
    /// A segment: there is another, or more in this one.
    Segment,
    /// Its turn: the mailbox is in hand, and waits for another, or rests.
    Turn,
    /// Its turn, and there is no room for it in hand: it goes back.
    Crowded,
}

impl Worker {
    /// Takes what is in a mailbox, if no other worker has a batch from it.
    // Called in one place. Without the attribute other files decide whether it is worth inlining.
    #[inline(always)]
    pub(super) fn gulp(&self, mailbox: &'static Mailbox, batch: &Batch) -> bool {
        let here = PreemptGuard::new();
        let statistics = self.statistics;
        // SAFETY: this is the worker's turn; preemption is off.
        let private = unsafe { self.private() };
        let mut result = mailbox.gulp(&private.spare);
        if matches!(result, GulpResult::NoSegment) {
            let segment = Segment::new(self.executor.segment_bytes);
            private.spare.set(segment.or_else(|| self.of_unused_lane(private)));
            // Without memory for a buffer the mail stays where it is; nothing is lost.
            result = mailbox.gulp(&private.spare);
        }
        match result {
            GulpResult::Taken(taken) => {
                self.count_gulp(mailbox, taken.messages);
                private.is_listed.set(false);
                batch.begin(mailbox, &taken, &here);
                self.set_in_batch(true);
                true
            }
            GulpResult::Empty => {
                statistics.empty_gulps.bump();
                false
            }
            GulpResult::Missed => {
                statistics.missed_gulps.bump();
                false
            }
            GulpResult::NoSegment => false,
        }
    }

    /// A batch was handled, and its mailbox has mail again: takes that at once, if nothing else waits for this
    /// worker, in exchange for the segment that the batch lay in. How many messages. Preemption is off.
    #[inline(always)]
    fn gulp_again(&self, mailbox: &'static Mailbox, batch: &Batch, here: &PreemptGuard) -> Option<u32> {
        // Who comes a moment later is seen after the next batch.
        if self.has_other_work() {
            return None;
        }
        let segment = self.own_segment(batch)?;
        mailbox.hand.close();
        let taken = mailbox.gulp_again(segment);
        batch.begin(mailbox, &taken, here);
        Some(taken.messages)
    }

    /// A batch was handled, its mailbox has mail again, and others wait: takes the mail in hand, behind theirs, in exchange for
    /// the segment that the batch lay in. Whether it could. Preemption is off.
    #[inline(always)]
    fn list_again(&self, mailbox: &'static Mailbox, batch: &Batch, here: &PreemptGuard) -> bool {
        let Some(segment) = self.own_segment(batch) else { return false };
        if !self.has_room_in_hand() || !self.executor.may_hold(mailbox, self) {
            return false;
        }
        mailbox.hand.close();
        if !mailbox.hold_again(segment, here) {
            return false;
        }
        batch.finish();
        self.list(mailbox, here);
        true
    }

    /// The batch's segment, all of which was delivered, if it is as good as new.
    #[inline(always)]
    fn own_segment(&self, batch: &Batch) -> Option<NonNull<Segment>> {
        let segment = batch.segment()?;
        // SAFETY: the segment is the batch's; all envelopes in it were delivered.
        let emptied = unsafe { segment.as_ref() };
        // A chain is `reclaim`'s business, and so is a segment that has been too large for long, or that a suspended behaviour still
        // reads. Any other is as good as new: what it says of its use is written when it is sealed.
        if !emptied.next.is_null() || !emptied.is_read_by_one() {
            return None;
        }
        if !self.is_small(segment) {
            // SAFETY: this is the worker's turn; preemption is off.
            let history = &unsafe { self.private() }.reclaim;
            if reclaim::is_poorly_used(emptied, batch.delivered_bytes(segment)) {
                // To put the mailbox down for it, and to take it in hand anew, costs more than a batch of a few messages.
                if !history.note_poorly_used() {
                    return None;
                }
            } else {
                history.note_well_used();
            }
        }
        Some(segment)
    }

    /// All of a batch was delivered that was sole, in a segment that has grown: whether the mailbox may keep that in hand, and rest.
    #[inline(always)]
    fn ends_growth(&self, mailbox: &Mailbox, batch: &Batch) -> bool {
        if mailbox.is_tried() {
            // What its batch takes is timed, and in the short way other mailboxes' would follow within that time.
            return false;
        }
        let segment = self.own_segment(batch);
        segment.inspect(|&segment| mailbox.hand.end_growth(segment)).is_some()
    }

    /// Whether a segment of the batch's has not grown.
    #[inline(always)]
    fn is_small(&self, segment: NonNull<Segment>) -> bool {
        // SAFETY: the segment is the batch's.
        unsafe { segment.as_ref() }.capacity_bytes() <= self.executor.segment_bytes
    }

    #[inline(always)]
    pub(super) fn count_gulp(&self, mailbox: &Mailbox, messages: u32) {
        self.count_batch(messages);
        trace::note_if_on(Kind::Gulp, core::ptr::from_ref(mailbox).addr() as u64, messages, None);
        if stats::timing() {
            self.statistics.mail_latency.record(mailbox.waited_ticks());
        }
    }

    #[inline(always)]
    pub(super) fn count_batch(&self, messages: u32) {
        self.statistics.gulps.bump();
        self.statistics.gulp_sizes.record(messages);
    }

    /// Counts a batch of so many messages that came from the run list: now, or as one of those of one message.
    #[inline(always)]
    fn count_listed(&self, messages: u64, singles: &mut u64) {
        if messages == 1 {
            *singles += 1;
        } else {
            self.count_batch(messages as u32);
        }
    }

    /// Counts batches of one message each.
    #[inline(always)]
    fn count_singles(statistics: &WorkerStatistics, singles: u64) {
        if singles > 0 {
            statistics.gulps.add(singles);
            statistics.gulp_sizes.record_many(1, singles);
        }
    }

    /// Delivers the batch in hand, as far as the budget goes, and those that follow in the run list as long as nothing else is to
    /// be done.
    pub(super) fn run_batch(&self, batch: &Batch, budget: &mut u64) -> AfterBatch {
        // A copy, because the compiler keeps it in a register.
        let mut left = *budget;
        let after = self.run_batches(batch, &mut left);
        *budget = left;
        after
    }

    #[inline(always)]
    fn run_batches(&self, batch: &Batch, budget: &mut u64) -> AfterBatch {
        self.share();
        // Batches of one message that are not counted yet.
        let mut singles = 0;
        // Short ones. What a batch takes that was handed over is timed, and no lane is opened in that time.
        let mut short = 0;
        let may_open_lane = !batch.mailbox().is_tried();
        let timing = stats::timing();
        // What the budget was when the batch that came from the list began.
        let mut began_with = *budget;
        // The envelope that comes next, where that is known.
        let mut first = None;
        loop {
            // From here to `disarm` the interrupt may split or cut the batch.
            batch.arm();
            // SAFETY: the batch is this activation's.
            let (mut delivered, left) = unsafe {
                match first.take() {
                    Some(envelope) => delivery::deliver_from(batch, envelope, *budget),
                    None => delivery::deliver(batch, *budget),
                }
            };
            *budget = left;
            let here = PreemptGuard::new();
            batch.disarm();
            if batch.was_changed() {
                if !batch.mend() {
                    // Wherever it runs by now.
                    Self::count_singles(Self::statistics(&here), singles);
                    note(&self.executor, &batch.tally, &here);
                    drop(here);
                    return AfterBatch::Over(detach::finish_detached(NonNull::from(batch)));
                }
                // It was cut. What is left, if only a look at what follows it, is for the next turn.
                if delivered == Delivered::All {
                    delivered = Delivered::OutOfBudget;
                }
            }
            // The worker's own turn is always on its core.
            let statistics = self.statistics;
            // SAFETY: this is the worker's turn.
            let private = unsafe { self.private() };
            let mailbox = batch.mailbox();
            if delivered == Delivered::All {
                if private.is_listed.get()
                    && mailbox.hand.is_sole()
                    && mailbox.waiting() == 0
                    && (!mailbox.hand.has_grown() || self.ends_growth(mailbox, batch))
                {
                    self.let_rest(mailbox, &here);
                    let messages = began_with - *budget;
                    self.count_listed(messages, &mut singles);
                    short += u64::from(messages < lane::SHORT);
                    let is_due = short >= lane::LOOKED_AT && may_open_lane && private.lane.is_due();
                    short %= lane::LOOKED_AT;
                    let here = if is_due {
                        match self.run_lane(private, batch, budget, here) {
                            AfterLane::Over(here) => here,
                            AfterLane::Settled { uncounted } => {
                                began_with = *budget + uncounted;
                                continue;
                            }
                            AfterLane::Ends(here) => {
                                // As at the end of any turn: a bit may have been lost when a mailbox was stolen.
                                self.point_all_out();
                                // What is in hand as a batch is the next turn's.
                                if private.is_listed.replace(false) && batch.segment().is_some() {
                                    self.one_put_down();
                                }
                                self.set_in_batch(batch.segment().is_some());
                                note_at(&self.executor, &batch.tally, statistics, &here);
                                Self::count_singles(statistics, singles);
                                drop(here);
                                self.leave_hand();
                                return AfterBatch::Over(Step::Yield);
                            }
                        }
                    } else {
                        here
                    };
                    if let Some(begun) = self.begin_next_listed(private, batch, *budget, &here) {
                        drop(here);
                        first = begun;
                        began_with = *budget;
                        self.share();
                        continue;
                    }
                    batch.finish();
                    self.set_in_batch(false);
                    note_at(&self.executor, &batch.tally, statistics, &here);
                    Self::count_singles(statistics, singles);
                    return AfterBatch::GoOn;
                }
                let was_listed = private.is_listed.get();
                let end = self.come_to_end(mailbox, batch, &here);
                match end {
                    End::All => {}
                    End::Segment => continue,
                    End::Turn | End::Crowded => {
                        let here = if matches!(end, End::Crowded) {
                            // Another worker may have it from here on: it must not be in this one's list of what may be at rest.
                            let here = self.put_resting_down_between(here);
                            mailbox.put_back();
                            self.executor.notify(mailbox, &here);
                            here
                        } else {
                            here
                        };
                        if was_listed {
                            self.count_listed(began_with - *budget, &mut singles);
                        }
                        note_at(&self.executor, &batch.tally, statistics, &here);
                        self.set_in_batch(false);
                        Self::count_singles(statistics, singles);
                        return AfterBatch::GoOn;
                    }
                }
            }
            if delivered == Delivered::OutOfBudget
                && let Some(granted) = self.grant_more(false)
            {
                began_with += granted - *budget;
                *budget = granted;
                continue;
            }
            if private.is_listed.replace(false) {
                self.one_put_down();
                self.count_listed(began_with - *budget, &mut singles);
            }
            note_at(&self.executor, &batch.tally, statistics, &here);
            if delivered != Delivered::All {
                Self::count_singles(statistics, singles);
                drop(here);
                self.leave_hand();
                return AfterBatch::Over(Step::Yield);
            }
            if mailbox.waiting() > 0
                && *budget > 0
                && let Some(messages) = self.gulp_again(mailbox, batch, &here)
            {
                if messages == 1 && !timing {
                    singles += 1;
                } else {
                    self.count_gulp(mailbox, messages);
                }
                continue;
            }
            if mailbox.waiting() > 0 && *budget > 0 && self.list_again(mailbox, batch, &here) {
                self.set_in_batch(false);
                Self::count_singles(statistics, singles);
                return AfterBatch::GoOn;
            }
            if self.next_segment(batch, &here) {
                continue;
            }
            self.set_in_batch(false);
            let here = if mailbox.hand.is_noted() { self.put_resting_down_between(here) } else { here };
            if mailbox.done() {
                self.executor.notify(mailbox, &here);
            }
            Self::count_singles(statistics, singles);
            return AfterBatch::GoOn;
        }
    }

    /// Keeps or frees an emptied segment, of which so many bytes were used. Preemption is off.
    #[inline(always)]
    fn keep(
        &self,
        private: &Private,
        mailbox: &Mailbox,
        segment: NonNull<Segment>,
        used: usize,
        is_last: bool,
    ) {
        let least_bytes = self.executor.segment_bytes;
        // A mailbox that has none yet is gulped in exchange for the worker's spare. There must be one when memory is used up, so
        // before a mailbox keeps what it came for, there is another, or this is it.
        if private.spare.get().is_none() {
            private.spare.set(Segment::new(least_bytes));
            if private.spare.get().is_none() {
                return private.spare.set(Some(segment));
            }
        }
        // SAFETY: nobody else uses it.
        let is_plain = is_last && unsafe { segment.as_ref() }.capacity_bytes() <= least_bytes;
        if !is_plain || !mailbox.hand.keep_spare(segment) {
            reclaim::keep_or_free(&private.reclaim, mailbox, &private.spare, segment, used, least_bytes);
        }
    }

    /// All of the batch in this segment was delivered. If mail follows it in hand the batch goes on with that, or leaves it to
    /// another turn of the mailbox's, which is listed then; what came from the list comes to rest, if it was not sole or has been handed over. Preemption
    /// is off.
    #[inline(never)]
    fn come_to_end(&self, mailbox: &'static Mailbox, batch: &Batch, here: &PreemptGuard) -> End {
        let Some(segment) = batch.segment() else { return End::All };
        // SAFETY: this is the worker's turn; preemption is off.
        let private = unsafe { self.private() };
        if mailbox.hand.follows() {
            let others_wait = self.has_other_work();
            match mailbox.hand.following(segment) {
                Following::Nothing => {}
                Following::Segment(next, end) => {
                    self.let_go_of(segment, mailbox, batch, false);
                    // SAFETY: what is in hand is this worker's.
                    batch.set_place(next, unsafe { Segment::enter(next) }, end);
                    return End::Segment;
                }
                // Who comes a moment later is seen after the next batch.
                Following::More if others_wait => {
                    if private.is_listed.replace(false) {
                        self.one_put_down();
                    }
                    batch.finish();
                    mailbox.follow_later();
                    if self.has_room_in_hand() && self.executor.may_hold(mailbox, self) {
                        self.list(mailbox, here);
                        return End::Turn;
                    }
                    return End::Crowded;
                }
                Following::More => {
                    // SAFETY: this is the worker's turn, and the mailbox is in its hand.
                    unsafe { batch.begin_held(mailbox, !others_wait) };
                    return End::Segment;
                }
            }
        }
        if private.is_listed.get() && mailbox.waiting() == 0 && self.own_segment(batch).is_some() {
            private.is_listed.set(false);
            batch.finish();
            mailbox.hand.note_sole(segment);
            self.let_rest(mailbox, here);
            return End::Turn;
        }
        End::All
    }

    /// A segment of the batch's is done: keeps or frees it, if nobody else reads it. Preemption is off.
    fn let_go_of(&self, mut segment: NonNull<Segment>, mailbox: &Mailbox, batch: &Batch, is_last: bool) {
        // SAFETY: all envelopes in it were delivered, but for one that a suspended behaviour may hold.
        if unsafe { segment.as_ref() }.release() {
            let used = batch.delivered_bytes(segment);
            // Whoever keeps it counts on one reader, and none is left if a suspended behaviour has just gone, too.
            // SAFETY: the caller was its last reader.
            unsafe { segment.as_mut() }.recycle();
            // SAFETY: this is the worker's turn.
            let private = unsafe { self.private() };
            // There must be a spare when memory is used up (`keep`).
            if private.spare.get().is_some() && private.lane.takes_back(segment) {
                return;
            }
            // SAFETY: as above.
            if unsafe { segment.as_ref() }.capacity_bytes() < self.executor.segment_bytes {
                // It came with a message of the kernel's own (`put_in_front`), and is too small to be used again.
                // SAFETY: as above; empty.
                unsafe { Segment::free(segment) };
                return;
            }
            // SAFETY: this is the worker's turn.
            self.keep(unsafe { self.private() }, mailbox, segment, used, is_last);
        }
    }

    /// The current segment is done: goes on to the next, if there is one. Preemption is off.
    fn next_segment(&self, batch: &Batch, _here: &PreemptGuard) -> bool {
        let Some(segment) = batch.segment() else { return false };
        // SAFETY: the segment is the batch's.
        let next = NonNull::new(unsafe { segment.as_ref() }.next);
        let mailbox = batch.mailbox();
        if next.is_none() {
            mailbox.hand.close();
        }
        batch.finish();
        self.let_go_of(segment, mailbox, batch, next.is_none());
        let Some(next) = next else { return false };
        // A chain that nobody adds to, or what is added would follow it.
        // SAFETY: as above.
        unsafe { batch.set_place(next, Segment::enter(next), Segment::used_end(next)) };
        true
    }
}
