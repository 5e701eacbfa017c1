//! Workers: the resident process on each core that runs an executor's mailboxes.
//!
//! Here is what a worker consists of, and what others may do to it. Its turns are in [`turn`], gulping and running a
//! batch in [`gulping`], what becomes a batch without a gulp in [`direct`], what waits for its turn in [`run_list`], guests among it in [`hosting`], one batch of lone messages for several
//! mailboxes in [`lane`], what comes in hand behind a suspended behaviour in [`piece`], what a slice's end asks of a turn in
//! [`slices`], what is counted afterwards in [`account`].
//!
//! A worker gives turns in *passes*: one batch to each mailbox that waits when the pass begins, first those in its run list,
//! then those that it finds in a round through its range of the table. What comes meanwhile waits for the next pass,
//! so no mailbox has two turns while another has none. In a round
//! 1. it looks at the mailboxes that senders have pointed out since the last round: whoever makes an empty mailbox
//!    non-empty sets a bit. In the next round after it has used up a turn's reductions it looks at all. Those with much mail go to
//!    the end of the run list, so that senders on this core add to them without a lock;
//! 2. another one with mail is gulped, unless another worker is still handling a batch from it (a *missed gulp*:
//!    it was stolen while that worker had it in hand, and that one tells of its mail);
//! 3. the batch is delivered, with a little of what its actors send to each other meanwhile, and at most as many messages in a turn
//!    as the worker has reductions, or more if nobody else waits for the core; what is left continues in the next turn, before
//!    anything else. If its mailbox has more mail by then, it goes to the end of the run list or, if nothing else waits, its batch
//!    goes on with that;
//! 4. when nothing is pointed out it tries to steal, once; then announces that it is idle, passes a full barrier, and looks
//!    through its whole range, because a bit may be lost when a mailbox is stolen. If it finds nothing it waits to be woken.
//!
//! The sender that makes an empty mailbox non-empty does the mirror image, see `mail/owner_hint.rs`.

pub(super) mod account;
pub(super) mod direct;
mod gulping;
mod hosting;
pub(super) mod lane;
mod pace;
mod piece;
mod put_down;
mod run_list;
mod slices;
mod surplus;
mod turn;

use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;

use self::lane::{Lane, Mark};
use self::pace::Pace;
use super::at_work::at_work;
use super::batch::Batch;
use super::executor_state::{ExecutorState, give_back};
use super::reclaim;
use crate::actor::mail::list::{End, Resting, Waiting};
use crate::actor::mail::segment::count_chain;
use crate::actor::mail::table::Range;
use crate::actor::mail::{Gulp, List, Mailbox, Segment};
use crate::arch::CoreId;
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::mem::Counted;
use crate::random::Random;
use crate::sched::{self, AtWork, ProcessRef};
use crate::stats::{self, WorkerStatistics};
use crate::sync::PreemptGuard;

/// Bits for the slots that senders point out.
const HINTS: usize = u64::BITS as usize;

/// What a worker keeps between turns; used by its own turn only.
struct Private {
    /// What is left of this round: a bit for each slot to look at.
    round: Cell<u64>,
    /// With more slots than bits: how many of those that share this round's first bit have been looked at.
    cursor: Cell<usize>,
    /// An empty segment to exchange at the next gulp.
    pub spare: Cell<Option<NonNull<Segment>>>,
    pub reclaim: reclaim::History,
    random: Random,
    /// Whether the batch in hand came from the run list.
    is_listed: Cell<bool>,
    /// Up to where those in the run list have their turn before anything else that waits.
    pass_end: Cell<End>,
    pace: Pace,
    lane: Lane,
}

/// One worker.
#[repr(align(128))]
pub(super) struct Worker {
    pub executor: Counted<ExecutorState>,
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
    /// Whether stealing from it pays.
    worth: sched::Worth,
    /// Whom it has stolen from, and one, while the next mail that was handed over is to tell whether that was worth it.
    robbed: AtomicU32,
    /// When it last ran dry, in clock ticks: the thieves' longest-victim rule.
    pub dry_since: AtomicU64,
    /// Where the delivery was when the last slice ended: how many messages had been handled on this core, and the position in the batch.
    /// For the timer's interrupt on its core.
    slice_mark: Cell<(u64, usize)>,
    /// What had waited in the lane when what waits was last looked at; and whether what had waited there at the look before was handled by then. For its core's loop, which
    /// interrupts it.
    look_mark: Cell<Option<Mark>>,
    keeps_up: Cell<bool>,
    /// The batch in hand; another one after a split. For this worker's core alone: who looks from another may find
    /// that its suspended activation has freed it.
    pub batch: AtomicPtr<Batch>,
    /// Whether that batch is not finished, for who looks from another core.
    in_batch: AtomicBool,
    /// That batch has come from its core's loop, and no turn has begun with it. Its core's.
    was_given_batch: Cell<bool>,
    /// Its process, from the start until it has ended.
    process: UnsafeCell<Option<ProcessRef>>,
    private: UnsafeCell<Private>,
    /// What waits for its turn: mailboxes that are in its hand, none of them between its turns but behind a suspended behaviour and what it owes, and guests.
    run_list: List<Waiting>,
    /// How many of those are guests. As the list.
    guests: Cell<usize>,
    /// Those that may be at rest in its hand; none between its turns, but for what it owes.
    resting: List<Resting>,
    /// How many are in hand in one of these lists, or came from there and are being delivered. As the lists, its core's with preemption
    /// off.
    in_hand: Cell<usize>,
    /// It is putting down what it has in hand, with preemption enabled now and then. Its core's.
    gives: Cell<bool>,
    /// What it has in hand is to go back before its next turn. Its core's.
    owes: Cell<bool>,
    /// How far that has come in the run list, if it has begun there. Its core's.
    looked: Cell<Option<put_down::Look>>,
    /// A suspended behaviour goes on on its core: what that sends may come in hand.
    has_piece: Cell<bool>,
}

// SAFETY: `private` is used by the worker's own turn only, of which there is one at a time: a turn that was
// detached does not touch it again. `process` changes only while nobody else uses it.
unsafe impl Sync for Worker {}
// SAFETY: as above; segments and batches may be used from any core.
unsafe impl Send for Worker {}

impl Worker {
    /// A worker that is not yet started.
    pub(super) fn new(
        executor: Counted<ExecutorState>,
        core: CoreId,
        batch: NonNull<Batch>,
        spare: NonNull<Segment>,
    ) -> Self {
        // Workers are on cores 0 and up.
        let index = core.index();
        Self {
            range: executor.table.range_of(index),
            executor,
            index,
            core,
            statistics: stats::worker(core),
            idle: AtomicBool::new(true),
            hints: AtomicU64::new(0),
            // Messages are taken for short, until some were not.
            worth: sched::Worth::new(false),
            robbed: AtomicU32::new(0),
            dry_since: AtomicU64::new(0),
            slice_mark: Cell::new((0, 0)),
            look_mark: Cell::new(None),
            keeps_up: Cell::new(false),
            batch: AtomicPtr::new(batch.as_ptr()),
            in_batch: AtomicBool::new(false),
            was_given_batch: Cell::new(false),
            process: UnsafeCell::new(None),
            private: UnsafeCell::new(Private {
                round: Cell::new(0),
                cursor: Cell::new(0),
                spare: Cell::new(Some(spare)),
                reclaim: reclaim::History::new(),
                random: Random::new(0, index),
                is_listed: Cell::new(false),
                pass_end: Cell::new(End::NONE),
                pace: Pace::new(),
                lane: Lane::new(),
            }),
            run_list: List::new(),
            guests: Cell::new(0),
            resting: List::new(),
            in_hand: Cell::new(0),
            gives: Cell::new(false),
            owes: Cell::new(false),
            looked: Cell::new(None),
            has_piece: Cell::new(false),
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
    unsafe fn private(&self) -> &Private {
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
        unsafe { &*self.executor.table.at(self.range.first + offset) }
    }

    /// How many of its mailboxes have mail. From any core; may be stale.
    pub(super) fn mailboxes_with_mail(&self) -> u32 {
        self.mailboxes().filter(|mailbox| mailbox.waiting() > 0).count() as u32
    }

    /// The mailboxes in its range, for whoever looks, but for one that is being swapped.
    fn mailboxes(&self) -> impl Iterator<Item = &'static Mailbox> {
        // SAFETY: mailboxes are never freed.
        self.executor.table.all_of(self.range).filter_map(|mailbox| unsafe { mailbox.as_ref() })
    }

    /// The actor whose message is being delivered. For its own turn, with preemption disabled: a batch that is split is
    /// not the worker's any more.
    pub(super) fn at_work(&self) -> Option<AtWork> {
        // SAFETY: set at the start and by `detach` only, to live batches.
        let batch = unsafe { &*self.batch.load(Ordering::Relaxed) };
        if !batch.is_armed() {
            return None;
        }
        // SAFETY: being delivered; its head is never changed.
        let (cell, word) =
            unsafe { batch.current().map(|envelope| (envelope.as_ref().cell, envelope.as_ref().word)) }?;
        Some(at_work(cell, word))
    }

    /// Says whether a batch is in hand. Its own turn's: a split leaves one to the worker, so it changes nothing.
    #[inline(always)]
    fn set_in_batch(&self, in_batch: bool) {
        // Relaxed: an estimate while the turn runs. Who must not miss a batch that a turn has left behind looks after
        // the core has said that it is idle, which orders it.
        self.in_batch.store(in_batch, Ordering::Relaxed);
    }

    /// What waits for it: mailboxes with mail, and a batch that is not finished. From any core, so it must not look at
    /// the batch itself: between reading the pointer and following it the batch may be split, its activation resumed on
    /// another core, and the batch freed there.
    pub(super) fn backlog(&self) -> u32 {
        // Relaxed: as in `set_in_batch`.
        self.mailboxes_with_mail() + u32::from(self.in_batch.load(Ordering::Relaxed))
    }

    /// Whether it waits to be woken, as far as is known.
    #[inline(always)]
    pub(super) fn is_idle(&self) -> bool {
        // Relaxed: who relies on it passes a full barrier before.
        self.idle.load(Ordering::Relaxed)
    }

    /// Points out a slot of its range: a mailbox there has mail.
    #[inline(always)]
    pub(super) fn hint(&self, offset: usize) {
        // Release: pairs with the acquire in `next_round`, which then sees the mail that was counted.
        self.hints.fetch_or(1 << (offset % HINTS), Ordering::Release);
    }

    /// Wakes it if it waits. The caller has passed a full barrier since the mail became visible.
    pub(super) fn wake_if_idle(&self) {
        if self.take_idle() {
            self.wake();
        }
    }

    /// Whether it waits, and the caller is the one who is to wake it.
    #[inline(always)]
    fn take_idle(&self) -> bool {
        // Relaxed: ordered by the barrier of a caller on another core. The exchange makes one waker of many the one who wakes.
        self.idle.load(Ordering::Relaxed) && self.idle.swap(false, Ordering::AcqRel)
    }

    /// Gives it a turn.
    pub(super) fn wake(&self) {
        // SAFETY: set before anybody could wake the worker, and taken after everybody has ended who could.
        if let Some(process) = unsafe { &*self.process.get() } {
            process.wake();
        }
    }

    /// The executor stops: ends the turn that runs, as if mail had come, and gives it another.
    pub(super) fn end_soon(&self) {
        // Release: as in `hint`.
        self.hints.fetch_or(u64::MAX, Ordering::Release);
        self.wake();
    }

    /// A random number below `bound`.
    pub(super) fn random_below(&self, bound: usize) -> usize {
        // SAFETY: this is the worker's turn.
        unsafe { self.private() }.random.below(bound.max(1))
    }

    /// At the end of the executor: what was never delivered from the batch in hand goes back to its mailbox.
    ///
    /// # Safety
    /// The worker has ended, and so have all behaviours that were suspended.
    pub(super) unsafe fn give_batch_back(&self) {
        // SAFETY: the worker has ended, so the batch is nobody else's; it was set to a live one.
        let batch = unsafe { &*self.batch.load(Ordering::Relaxed) };
        let Some(first) = batch.segment() else { return };
        batch.note_use();
        batch.finish();
        let head = batch.position();
        // SAFETY: the rest of the chain is the batch's, and was not delivered; nobody else reads it any more.
        unsafe { give_back(batch.mailbox(), Gulp { first, head }, count_chain(first, head)) };
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
            let private = self.private.get_mut();
            private.lane.end();
            if let Some(spare) = private.spare.take() {
                Segment::free(spare);
            }
        }
    }
}
