//! Gulping a mailbox, and running the batch to its end.

use core::ptr::NonNull;

use super::Worker;
use super::account::{note, note_at};
use crate::actor::mail::mailbox::GulpResult;
use crate::actor::mail::{Mailbox, Segment};
use crate::actor::run::batch::Batch;
use crate::actor::run::delivery::{self, Delivered};
use crate::actor::run::{detach, reclaim};
use crate::sched::Step;
use crate::stats::{self, WorkerStatistics};
use crate::sync::PreemptGuard;

/// How the turn goes on after a batch.
pub(super) enum AfterBatch {
    /// The batch is done: with the next mailbox.
    GoOn,
    /// It ends so.
    Over(Step),
}

impl Worker {
    /// Takes what is in a mailbox, if no other worker has a batch from it.
    // Called in one place. Without the attribute other files decide whether it is worth inlining.
    #[inline(always)]
    pub(super) fn gulp(&self, mailbox: &'static Mailbox, batch: &Batch) -> bool {
        let _here = PreemptGuard::new();
        let statistics = self.statistics;
        // SAFETY: this is the worker's turn; preemption is off.
        let private = unsafe { self.private() };
        let Some(spare) = private.spare.take().or_else(|| Segment::new(self.executor.segment_bytes)) else {
            // Without memory for a buffer the mail stays where it is; nothing is lost.
            return false;
        };
        match mailbox.gulp(spare) {
            GulpResult::Taken(gulp, messages) => {
                Self::count_gulp(mailbox, messages, statistics);
                batch.begin(mailbox, gulp);
                self.set_in_batch(true);
                true
            }
            GulpResult::Empty => {
                statistics.empty_gulps.bump();
                private.spare.set(Some(spare));
                false
            }
            GulpResult::Missed => {
                statistics.missed_gulps.bump();
                private.spare.set(Some(spare));
                false
            }
        }
    }

    /// A batch was handled, and its mailbox has mail again: takes that at once, if nothing else waits for this
    /// worker, in exchange for the segment that the batch lay in. How many messages. Preemption is off.
    #[inline(always)]
    fn gulp_again(&self, mailbox: &'static Mailbox, batch: &Batch) -> Option<u32> {
        // Who comes a moment later is seen after the next batch.
        if self.has_other_work() {
            return None;
        }
        let segment = batch.segment()?;
        // SAFETY: the segment is the batch's; all envelopes in it were delivered.
        let emptied = unsafe { segment.as_ref() };
        // A chain is `reclaim`'s business, and so is a segment that has grown too large, or that a suspended behaviour still
        // reads. Any other is as good as new: what it says of its use is written when it is sealed.
        if !emptied.next.is_null() || !emptied.is_read_by_one() {
            return None;
        }
        if emptied.capacity_bytes() > self.executor.segment_bytes {
            if reclaim::is_poorly_used(emptied) {
                return None;
            }
            // SAFETY: this is the worker's turn; preemption is off.
            unsafe { self.private() }.reclaim.note_well_used();
        }
        let (gulp, messages) = mailbox.gulp_again(segment);
        // SAFETY: the chain was gulped, so it is the batch's.
        batch.set_place(gulp.first, gulp.head, unsafe { Segment::used_end(gulp.first) });
        Some(messages)
    }

    #[inline(always)]
    fn count_gulp(mailbox: &Mailbox, messages: u32, statistics: &WorkerStatistics) {
        statistics.gulps.bump();
        statistics.messages_taken.add(u64::from(messages));
        statistics.gulp_sizes.record(messages);
        if stats::timing() {
            statistics.mail_latency.record(mailbox.waited_ticks());
        }
    }

    /// Counts gulps of one message each.
    #[inline(always)]
    fn count_singles(statistics: &WorkerStatistics, singles: u64) {
        if singles > 0 {
            statistics.gulps.add(singles);
            statistics.messages_taken.add(singles);
            statistics.gulp_sizes.record_many(1, singles);
        }
    }

    /// Delivers the batch in hand, as far as the budget goes.
    pub(super) fn run_batch(&self, batch: &Batch, budget: &mut u64) -> AfterBatch {
        self.share();
        // Gulps of one message that followed without the mailbox being put down, not counted yet.
        let mut singles = 0;
        let timing = stats::timing();
        loop {
            // From here to `disarm` the interrupt may split the batch.
            batch.arm();
            // SAFETY: the batch is this activation's.
            let delivered = unsafe { delivery::deliver(batch, budget) };
            let here = PreemptGuard::new();
            batch.disarm();
            if batch.is_split() {
                // Wherever it runs by now.
                Self::count_singles(Self::statistics(&here), singles);
                note(&self.executor, &batch.tally, &here);
                drop(here);
                return AfterBatch::Over(detach::finish_detached(NonNull::from(batch)));
            }
            // The worker's own turn is always on its core.
            let statistics = self.statistics;
            note_at(&self.executor, &batch.tally, statistics, &here);
            if delivered != Delivered::All {
                Self::count_singles(statistics, singles);
                return AfterBatch::Over(Step::Yield);
            }
            let mailbox = batch.mailbox();
            if mailbox.waiting() > 0
                && *budget > 0
                && let Some(messages) = self.gulp_again(mailbox, batch)
            {
                if messages == 1 && !timing {
                    singles += 1;
                } else {
                    Self::count_gulp(mailbox, messages, statistics);
                }
                continue;
            }
            if self.next_segment(batch) {
                continue;
            }
            self.set_in_batch(false);
            if mailbox.done() {
                self.executor.notify(mailbox, &here);
            }
            Self::count_singles(statistics, singles);
            return AfterBatch::GoOn;
        }
    }

    /// The current segment is done: goes on to the next, if there is one. Preemption is off.
    fn next_segment(&self, batch: &Batch) -> bool {
        let Some(segment) = batch.segment() else { return false };
        // SAFETY: the segment is the batch's.
        let next = NonNull::new(unsafe { segment.as_ref() }.next);
        batch.finish();
        // SAFETY: this is the worker's turn.
        let private = unsafe { self.private() };
        // SAFETY: all envelopes in it were delivered, but for one that a suspended behaviour may hold.
        if unsafe { segment.as_ref() }.release() {
            reclaim::keep_or_free(&private.reclaim, &private.spare, segment, self.executor.segment_bytes);
        }
        let Some(next) = next else { return false };
        // SAFETY: as above.
        batch.set_place(next, Segment::begin(next), unsafe { Segment::used_end(next) });
        true
    }
}
