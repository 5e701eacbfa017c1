//! Workers: the resident process on each core that runs an executor's mailboxes.
//!
//! A worker goes round its range of the table:
//! 1. it looks at the mailboxes that senders have pointed out since the last round: who makes an empty mailbox
//!    non-empty sets a bit. When there are no bits it looks at all, once more before it gives up, and whenever
//!    it has used up a turn's reductions, for a bit may be lost when a mailbox is stolen;
//! 2. a mailbox with mail is gulped, unless another worker is still handling a batch from it (a *missed gulp*:
//!    it was stolen while that worker had it in hand, and will be found again in the next round);
//! 3. the batch is delivered, at most as many messages in a turn as the worker has reductions; what is
//!    left continues in the next turn, before anything else;
//! 4. after looking at all twice and finding nothing it tries to steal, once; then announces that it is idle, passes a full
//!    barrier, looks through its range again, and waits to be woken.
//!
//! The sender that makes an empty mailbox non-empty does the mirror image, see [`owner`](super::owner).

use alloc::sync::Arc;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;

use super::batch::Batch;
use super::delivery::{self, Delivered, Tally};
use super::mailbox::{GulpResult, Mailbox};
use super::segment::{self, Segment};
use super::shared::Shared;
use super::table::Range;
use super::{detach, reclaim, steal};
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering};
use crate::arch::{CoreId, barrier};
use crate::sched::{self, ProcessRef, Step};
use crate::stats::{self, WorkerStatistics};
use crate::sync::PreemptGuard;

/// Bits for the slots that senders point out.
const HINTS: usize = u64::BITS as usize;

/// What a worker keeps between turns; used by its own turn only.
pub(super) struct Private {
    /// What is left of this round: a bit for each slot to look at.
    round: Cell<u64>,
    /// With more slots than bits: which of those that share a bit comes next.
    cursor: Cell<usize>,
    /// An empty segment to exchange at the next gulp.
    pub spare: Cell<Option<NonNull<Segment>>>,
    pub reclaim: reclaim::History,
    /// State of its random numbers.
    random: Cell<u64>,
}

/// One worker.
#[repr(align(128))]
pub(super) struct Worker {
    pub shared: Arc<Shared>,
    pub index: usize,
    core: CoreId,
    /// That core's counters.
    statistics: &'static WorkerStatistics,
    /// The slots that it goes through.
    pub range: Range,
    /// Set while it waits to be woken; whoever clears it wakes it.
    idle: AtomicBool,
    /// Slots that senders have pointed out: bit `offset % 64`.
    hints: AtomicU64,
    /// When it last ran dry, in clock ticks: the thieves' longest-victim rule.
    pub dry_since: AtomicU64,
    /// The batch in hand; another one after a split.
    pub batch: AtomicPtr<Batch>,
    /// Its process, from the start until it has ended.
    process: UnsafeCell<Option<ProcessRef>>,
    private: UnsafeCell<Private>,
}

// SAFETY: `private` is used by the worker's own turn only, of which there is one at a time: a turn that was
// detached does not touch it again. `process` changes only while nobody else uses it.
unsafe impl Sync for Worker {}
// SAFETY: as above; segments and batches may be used from any core.
unsafe impl Send for Worker {}

impl Worker {
    /// A worker that is not yet started.
    pub(super) fn new(
        shared: Arc<Shared>,
        core: CoreId,
        batch: NonNull<Batch>,
        spare: NonNull<Segment>,
    ) -> Self {
        // Workers are on cores 0 and up.
        let index = core.index();
        Self {
            range: shared.table.range_of(index),
            shared,
            index,
            core,
            statistics: stats::worker(core),
            idle: AtomicBool::new(true),
            hints: AtomicU64::new(0),
            dry_since: AtomicU64::new(0),
            batch: AtomicPtr::new(batch.as_ptr()),
            process: UnsafeCell::new(None),
            private: UnsafeCell::new(Private {
                round: Cell::new(0),
                cursor: Cell::new(0),
                spare: Cell::new(Some(spare)),
                reclaim: reclaim::History::new(),
                random: Cell::new(0x2545_f491_4f6c_dd1d ^ (index as u64 + 1) << 20),
            }),
        }
    }

    /// Sets its process.
    ///
    /// # Safety
    /// Called once, before anybody can wake it.
    pub(super) unsafe fn set_process(&self, process: ProcessRef) {
        // SAFETY: by contract.
        unsafe { *self.process.get() = Some(process) };
    }

    /// Lets go of its process, which keeps the worker alive as long as the worker keeps it.
    ///
    /// # Safety
    /// The worker has ended, and nobody will wake it.
    pub(super) unsafe fn drop_process(&self) {
        // SAFETY: by contract.
        drop(unsafe { (*self.process.get()).take() });
    }

    pub(super) fn core(&self) -> CoreId {
        self.core
    }

    /// # Safety
    /// The caller is the worker's turn, not detached from it, and keeps no reference across the end of it.
    pub(super) unsafe fn private(&self) -> &Private {
        // SAFETY: by contract.
        unsafe { &*self.private.get() }
    }

    /// The counters of the core that the caller runs on.
    pub(super) fn statistics(_here: &PreemptGuard) -> &'static WorkerStatistics {
        stats::worker_here()
    }

    /// The mailbox in one of its own slots.
    pub(super) fn own(&self, offset: usize) -> &'static Mailbox {
        // SAFETY: only this worker makes its own slots null, and not while it is here; mailboxes are never
        // freed.
        unsafe { &*self.shared.table.at(self.range.first + offset) }
    }

    /// How many of its mailboxes have mail. From any core; may be old.
    pub(super) fn mailboxes_with_mail(&self) -> u32 {
        let with_mail = |offset: &usize| self.at(*offset).is_some_and(|mailbox| mailbox.waiting() > 0);
        (0..self.range.slots).filter(with_mail).count() as u32
    }

    /// The mailbox in one of its slots, for whoever looks; `None` while it is being swapped.
    fn at(&self, offset: usize) -> Option<&'static Mailbox> {
        // SAFETY: mailboxes are never freed.
        unsafe { self.shared.table.at(self.range.first + offset).as_ref() }
    }

    /// Whether a batch is in hand; may be old.
    fn has_batch(&self) -> bool {
        // Relaxed: an estimate.
        // SAFETY: batches are freed only by the activation that was detached with them, after it was
        // replaced here; by the worker's end otherwise.
        unsafe { &*self.batch.load(Ordering::Relaxed) }.segment().is_some()
    }

    /// What waits for it: mailboxes with mail, and a batch that is not finished.
    pub(super) fn backlog(&self) -> u32 {
        self.mailboxes_with_mail() + u32::from(self.has_batch())
    }

    /// Points out a slot of its range: a mailbox there has mail.
    #[inline(always)]
    pub(super) fn hint(&self, offset: usize) {
        // Release: pairs with the acquire in `next_round`, which then sees the mail that was counted.
        self.hints.fetch_or(1 << (offset % HINTS), Ordering::Release);
    }

    /// Wakes it if it waits. The caller has passed a full barrier since the mail became visible.
    pub(super) fn wake_if_idle(&self) {
        // Relaxed: ordered by the caller's barrier. The exchange makes one waker of many the one who wakes.
        if self.idle.load(Ordering::Relaxed) && self.idle.swap(false, Ordering::AcqRel) {
            self.wake();
        }
    }

    /// Gives it a turn.
    pub(super) fn wake(&self) {
        // SAFETY: set before anybody could wake the worker, and taken after everybody has ended who could.
        if let Some(process) = unsafe { &*self.process.get() } {
            process.wake();
        }
    }

    /// One turn.
    pub(super) fn turn(&self) -> Step {
        if !self.shared.is_open() {
            return self.turn_while_closed();
        }
        // Relaxed: whoever woke it has cleared it already, or it was woken for another reason.
        self.idle.store(false, Ordering::Relaxed);
        let mut budget = self.shared.reductions;
        // SAFETY: set at the start and by `detach` only, both to live batches.
        let batch = unsafe { &*self.batch.load(Ordering::Relaxed) };
        if batch.segment().is_some() {
            match self.run_batch(batch, &mut budget) {
                Turn::GoOn => {}
                Turn::Over(step) => return step,
            }
        }
        let mut empty = 0;
        // What behaviours send is charged to the turn as well.
        while budget > 0 && !sched::is_exhausted() {
            if self.shared.is_stopping() {
                return self.end();
            }
            // SAFETY: this is the worker's turn, and no batch is in hand, so it cannot be detached.
            let private = unsafe { self.private() };
            if private.round.get() == 0 && !self.next_round(private) {
                empty += 1;
                budget -= 1;
                if empty < 2 {
                    continue;
                }
                empty = 0;
                if steal::try_steal(self) {
                    continue;
                }
                return if self.wait() { Step::Pending } else { Step::Yield };
            }
            let Some(mailbox) = self.next_in_round(private) else { continue };
            if !self.gulp(mailbox, batch) {
                budget -= 1;
                continue;
            }
            empty = 0;
            match self.run_batch(batch, &mut budget) {
                Turn::GoOn => {}
                Turn::Over(step) => return step,
            }
        }
        // SAFETY: as above.
        unsafe { self.private() }.round.set(u64::MAX);
        Step::Yield
    }

    /// A turn before the executor is complete, or after it was asked to stop.
    #[cold]
    fn turn_while_closed(&self) -> Step {
        // It stays announced as idle until the executor is complete: who then has mail for it wakes it.
        if self.shared.is_stopping() { self.end() } else { Step::Pending }
    }

    /// Begins a round with what senders have pointed out; without that, with every mailbox that has mail.
    /// Whether there is anything to look at.
    #[inline(always)]
    fn next_round(&self, private: &Private) -> bool {
        // Relaxed: only saves the exchange. Acquire: pairs with the release in `hint`.
        let mut round = match self.hints.load(Ordering::Relaxed) {
            0 => 0,
            _ => self.hints.swap(0, Ordering::Acquire),
        };
        if round == 0 {
            for offset in (0..self.range.slots).filter(|&offset| self.own(offset).is_ripe()) {
                round |= 1 << (offset % HINTS);
            }
        }
        private.round.set(round);
        round != 0
    }

    /// The next mailbox of this round, if it has mail. The round is not over.
    #[inline(always)]
    fn next_in_round(&self, private: &Private) -> Option<&'static Mailbox> {
        let round = private.round.get();
        let bit = round.trailing_zeros() as usize;
        if self.range.slots <= HINTS {
            private.round.set(round & (round - 1));
            let mailbox = (bit < self.range.slots).then(|| self.own(bit))?;
            return (mailbox.waiting() > 0).then_some(mailbox);
        }
        // Several slots share the bit: it stays until none of them has mail. They take turns.
        let sharing = (self.range.slots - bit).div_ceil(HINTS);
        for _ in 0..sharing {
            private.cursor.set((private.cursor.get() + 1) % sharing);
            let mailbox = self.own(bit + HINTS * private.cursor.get());
            if mailbox.waiting() > 0 {
                // The bit goes to the next round, for the others in this one must have their turn, too.
                private.round.set(round & (round - 1));
                self.hint(bit);
                return Some(mailbox);
            }
        }
        private.round.set(round & (round - 1));
        None
    }

    /// Takes what is in a mailbox, if no other worker has a batch from it.
    fn gulp(&self, mailbox: &'static Mailbox, batch: &Batch) -> bool {
        let _here = PreemptGuard::new();
        let statistics = self.statistics;
        // SAFETY: this is the worker's turn; preemption is off.
        let private = unsafe { self.private() };
        let Some(spare) = private.spare.take().or_else(|| Segment::new(self.shared.segment_bytes)) else {
            // Without memory for a buffer the mail stays where it is; nothing is lost.
            return false;
        };
        match mailbox.gulp(spare) {
            GulpResult::Taken(gulp, messages) => {
                Self::count_gulp(mailbox, messages, statistics);
                batch.begin(mailbox, gulp);
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
        // SAFETY: this is the worker's turn.
        let private = unsafe { self.private() };
        // Relaxed: who comes a moment later is seen after the next batch.
        if private.round.get() != 0 || self.hints.load(Ordering::Relaxed) != 0 {
            return None;
        }
        let segment = batch.segment()?;
        // SAFETY: the segment is the batch's; all envelopes in it were delivered.
        let emptied = unsafe { segment.as_ref() };
        // A chain, or a segment that grew, is `reclaim`'s business; so is one that a suspended behaviour still
        // reads. One that is neither is as good as new: what it says of its use is written when it is sealed.
        let is_plain = emptied.next.is_null() && emptied.capacity_bytes() <= self.shared.segment_bytes;
        if !is_plain || !emptied.is_read_by_one() {
            return None;
        }
        let (gulp, messages) = mailbox.gulp_again(segment);
        // SAFETY: the chain was gulped, so it is the batch's.
        batch.set_place(gulp.first, gulp.head, unsafe { Segment::used_end(gulp.first) });
        Some(messages)
    }

    #[inline(always)]
    fn count_gulp(mailbox: &Mailbox, messages: u32, statistics: &WorkerStatistics) {
        statistics.gulps.bump();
        statistics.messages_sent.add(u64::from(messages));
        statistics.gulp_sizes.record(messages);
        if stats::timing() {
            statistics.residence.record(mailbox.waited_ticks());
        }
    }

    /// Counts gulps of one message each.
    #[inline(always)]
    fn count_singles(statistics: &WorkerStatistics, singles: u64) {
        if singles > 0 {
            statistics.gulps.add(singles);
            statistics.messages_sent.add(singles);
            statistics.gulp_sizes.record_many(1, singles);
        }
    }

    /// Delivers the batch in hand, as far as the budget goes.
    fn run_batch(&self, batch: &Batch, budget: &mut u64) -> Turn {
        self.shared.call_thief(self);
        // Gulps of one message that followed without the mailbox being put down, not counted yet.
        let mut singles = 0;
        let timing = stats::timing();
        loop {
            let mut tally = Tally::default();
            // From here to `disarm` the interrupt may split the batch.
            batch.arm();
            // SAFETY: the batch is this activation's.
            let delivered = unsafe { delivery::deliver(batch, budget, &mut tally) };
            let here = PreemptGuard::new();
            batch.disarm();
            if batch.is_split() {
                // Wherever it runs by now.
                Self::count_singles(Self::statistics(&here), singles);
                note(&self.shared, &tally, &here);
                drop(here);
                return Turn::Over(detach::finish_detached(NonNull::from(batch)));
            }
            // The worker's own turn is always on its core.
            let statistics = self.statistics;
            note_at(&self.shared, &tally, statistics, &here);
            if delivered != Delivered::All {
                Self::count_singles(statistics, singles);
                return Turn::Over(Step::Yield);
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
            if mailbox.done() {
                self.shared.notify(mailbox);
            }
            Self::count_singles(statistics, singles);
            return Turn::GoOn;
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
            reclaim::keep_or_free(private, segment, self.shared.segment_bytes);
        }
        let Some(next) = next else { return false };
        // SAFETY: as above.
        batch.set_place(next, Segment::begin(next), unsafe { Segment::used_end(next) });
        true
    }

    /// Announces that it waits, and looks again. Whether it shall wait.
    fn wait(&self) -> bool {
        // Relaxed: the barrier orders it before the look.
        self.idle.store(true, Ordering::Relaxed);
        // Pairs with the barrier in `notify`.
        barrier::full();
        // What another worker has in hand it will tell of when it puts it down.
        let none_is_ripe = !(0..self.range.slots).any(|offset| self.at(offset).is_some_and(Mailbox::is_ripe));
        if none_is_ripe && !self.shared.is_stopping() {
            return true;
        }
        // Relaxed: a waker that was faster has only woken it once more.
        self.idle.store(false, Ordering::Relaxed);
        false
    }

    /// The executor stops: drops what is in hand. Its last turn.
    fn end(&self) -> Step {
        let _here = PreemptGuard::new();
        self.shared.one_ended();
        Step::Done
    }

    /// Random, below `bound`; xorshift64*.
    pub(super) fn random_below(&self, bound: usize) -> usize {
        // SAFETY: this is the worker's turn.
        let random = &unsafe { self.private() }.random;
        let mut x = random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        random.set(x);
        (x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % bound.max(1)
    }

    /// At the end of the executor: drops what was never delivered from the batch in hand.
    ///
    /// # Safety
    /// The worker has ended.
    pub(super) unsafe fn drop_batch(&self) -> u64 {
        // SAFETY: the worker has ended, so the batch is nobody else's; it was set to a live one.
        let batch = unsafe { &*self.batch.load(Ordering::Relaxed) };
        let Some(segment) = batch.segment() else { return 0 };
        batch.finish();
        // SAFETY: the rest of the chain is the batch's, and was not delivered.
        unsafe {
            let mut dropped = segment::drop_envelopes(batch.position(), batch.end());
            if let Some(next) = NonNull::new(segment.as_ref().next) {
                dropped += segment::drop_chain(next, Segment::begin(next));
            }
            if segment.as_ref().release() {
                Segment::free(segment);
            }
            dropped
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        // SAFETY: nobody else has the worker; its batch was made in `Batch::new`, and is empty by now, or the
        // worker was never started.
        unsafe {
            if let Some(batch) = NonNull::new(self.batch.load(Ordering::Relaxed)) {
                Batch::free(batch);
            }
            if let Some(spare) = self.private.get_mut().spare.take() {
                Segment::free(spare);
            }
        }
    }
}

/// Adds what a delivery counted.
pub(super) fn note(shared: &Shared, tally: &Tally, here: &PreemptGuard) {
    note_at(shared, tally, Worker::statistics(here), here);
}

/// [`note`], for who has found this core's counters already.
#[inline(always)]
fn note_at(shared: &Shared, tally: &Tally, statistics: &WorkerStatistics, here: &PreemptGuard) {
    statistics.messages_handled.add(tally.handled);
    if tally.dead_letters | tally.ended > 0 {
        note_ends(shared, tally, statistics, here);
    }
}

#[cold]
#[inline(never)]
fn note_ends(shared: &Shared, tally: &Tally, statistics: &WorkerStatistics, here: &PreemptGuard) {
    statistics.dead_letters.add(tally.dead_letters);
    if tally.ended > 0 {
        statistics.actors_ended.add(tally.ended);
        if tally.kept {
            shared.note_kept();
        }
        shared.live.ended(tally.ended, here);
    }
}

enum Turn {
    GoOn,
    Over(Step),
}
