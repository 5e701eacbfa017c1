//! Mailboxes: a locked copy queue each, which senders write to and one worker at a time drains.
//!
//! What excludes two workers is `being_processed`, not the slot of the table: a worker may have read a slot
//! just before a thief emptied it. It is set under the lock and cleared outside it, with a release.
//!
//! Here is what a mailbox consists of, and what is known of it. Taking mail out is in [`taking`], what is in a worker's hand in
//! [`holding`], and when mail may leave for another core in [`leaving`].

mod holding;
mod leaving;
mod taking;

use core::mem::offset_of;
use core::ptr::NonNull;

pub(crate) use self::holding::HoldResult;
pub(crate) use self::taking::{GulpResult, Taken};
use super::bound::Bound;
use super::copy_queue::CopyQueue;
use super::gone_flag::GoneFlag;
use super::growth::Growth;
use super::guest_flag::GuestFlag;
use super::hand::Hand;
use super::owner_hint::OwnerHint;
use super::patience::Patience;
use super::place::Place;
use super::processing_flag::ProcessingFlag;
use super::segment::{self, Segment};
use super::waiting_senders::WaitingSenders;
use crate::actor::storage::MailboxIndex;
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering};
use crate::arch::{CoreId, clock};
use crate::stats;
use crate::sync::{PreemptGuard, SpinGuard, SpinLock};

/// Who runs the actors of a mailbox: an executor, of which nothing is known here but where it lies.
#[repr(C)]
pub(crate) struct Runner {
    _opaque: [u8; 0],
}

/// What senders lock.
#[repr(C)]
pub(crate) struct Inside {
    pub queue: CopyQueue,
    /// Its executor has stopped, or is stopping: nothing is accepted.
    pub closed: bool,
    pub bound: Bound,
    /// The most memory that the queue has had, and the most messages that were found waiting.
    pub most_bytes: usize,
    pub most_messages: u32,
}

/// What a mailbox has locked.
pub(crate) type Locked<'a> = SpinGuard<'a, Inside, AtomicU32>;

/// One mailbox. On cache lines of its own: senders from every core write to it. The lock comes first: where it is needs no computing then.
#[repr(C, align(128))]
pub(crate) struct Mailbox {
    /// Beside the lock: how many messages wait, written under it, read by anyone. Who sends looks there first.
    pub inside: SpinLock<Inside, AtomicU32>,
    /// When the first of them came, in clock ticks, while that is being timed; else 0.
    since: AtomicU64,
    /// For how long they have waited, and whether that is too long.
    patience: Patience,
    /// A worker is handling a batch from here: what its actors wrote is not published yet.
    being_processed: ProcessingFlag,
    /// An actor of its has gone since mail was last taken out.
    pub(crate) gone: GoneFlag,
    /// What that worker has in hand of it.
    pub(crate) hand: Hand,
    /// It is a guest of a worker that is not its owner.
    pub(crate) guest: GuestFlag,
    /// The next in that list, a worker's run list.
    pub(super) next_guest: AtomicPtr<()>,
    /// Its actors are pinned: thieves pass by.
    pinned: AtomicBool,
    /// They are, or there is no other worker: nobody but its own worker ever handles its mail.
    fixed: AtomicBool,
    /// Its executor's workers are `Max` or `High`.
    urgent: AtomicBool,
    /// Where in the table it is, as far as is known: the bits of a [`Place`].
    pub(super) owner: OwnerHint,
    /// Who waits for room, if it is bounded.
    pub(crate) waiting_senders: WaitingSenders,
    index: MailboxIndex,
    runner: AtomicPtr<Runner>,
    /// How many messages were taken out since it was opened, or let to one actor; written under the lock.
    taken: AtomicU64,
    /// How often it has gone to another worker since, and whose core that is; for those who look.
    moves: AtomicU32,
    core: AtomicU8,
    /// When it was let to one actor, in clock ticks; 0 while it is nobody's, or for many.
    let_at: AtomicU64,
    /// Who makes a long segment for it.
    pub(crate) growth: Growth,
}

// A checker's locks are larger than the machine's.
#[cfg(target_os = "none")]
const _: () = {
    use crate::arch::queue_layout::{LOCK_AT, PLACE_AT, WAITING_AT};

    type Lock = SpinLock<Inside, AtomicU32>;
    assert!(offset_of!(Mailbox, inside) + Lock::STATE_AT == LOCK_AT);
    assert!(offset_of!(Mailbox, inside) + Lock::BESIDE_AT == WAITING_AT);
    let queue = Lock::DATA_AT + offset_of!(Inside, queue);
    assert!(offset_of!(Mailbox, inside) + queue + CopyQueue::PLACE_AT == PLACE_AT);
};

/// Bytes of a mailbox's buffer before it has grown.
pub(crate) const FIRST_SEGMENT_BYTES: usize = 1024;

impl Mailbox {
    /// How many bytes behind its beginning the gate of its hand lies.
    pub(crate) const GATE_AT: usize = offset_of!(Self, hand) + Hand::GATE_AT;

    /// A closed mailbox.
    pub(super) fn new(index: MailboxIndex, segment: NonNull<Segment>) -> Self {
        let inside = Inside {
            queue: CopyQueue::new(segment, true),
            closed: true,
            bound: Bound::NONE,
            most_bytes: 0,
            most_messages: 0,
        };
        Self {
            inside: SpinLock::with_beside(AtomicU32::new(0), inside),
            since: AtomicU64::new(0),
            patience: Patience::new(),
            being_processed: ProcessingFlag::new(),
            gone: GoneFlag::new(),
            hand: Hand::new(),
            guest: GuestFlag::new(),
            next_guest: AtomicPtr::new(core::ptr::null_mut()),
            pinned: AtomicBool::new(false),
            fixed: AtomicBool::new(false),
            urgent: AtomicBool::new(false),
            owner: OwnerHint::new(0),
            waiting_senders: WaitingSenders::new(index),
            index,
            runner: AtomicPtr::new(core::ptr::null_mut()),
            taken: AtomicU64::new(0),
            moves: AtomicU32::new(0),
            core: AtomicU8::new(0),
            let_at: AtomicU64::new(0),
            growth: Growth::new(),
        }
    }

    /// The same, for who keeps it.
    #[inline(always)]
    pub(crate) fn for_ever(&self) -> &'static Self {
        // SAFETY: mailboxes are made by the directory alone, and never freed.
        unsafe { &*core::ptr::from_ref(self) }
    }

    pub(crate) fn index(&self) -> MailboxIndex {
        self.index
    }

    /// Opens it for an executor, which has it in this place of its table.
    ///
    /// # Safety
    /// Runners of all mailboxes are of one type, and this one lives until the mailbox was closed and all have ended that work
    /// for it.
    pub(crate) unsafe fn open(
        &self,
        runner: *const Runner,
        place: Place,
        core: CoreId,
        (pinned, fixed): (bool, bool),
        urgent: bool,
        bound: Bound,
    ) {
        let mut inside = self.inside.lock();
        // Relaxed: published by the lock, and by the address that leads here.
        self.runner.store(runner.cast_mut(), Ordering::Relaxed);
        self.owner.reset(place.bits() as usize);
        self.core.store(core.index() as u8, Ordering::Relaxed);
        self.moves.store(0, Ordering::Relaxed);
        self.taken.store(0, Ordering::Relaxed);
        self.let_at.store(0, Ordering::Relaxed);
        self.pinned.store(pinned, Ordering::Relaxed);
        self.fixed.store(fixed, Ordering::Relaxed);
        self.urgent.store(urgent, Ordering::Relaxed);
        // The last executor's workers have ended, and their lists with them.
        self.guest.reset();
        self.patience.reset();
        self.growth.reset();
        inside.closed = false;
        inside.bound = bound;
        inside.most_bytes = inside.queue.capacity_bytes();
        inside.most_messages = 0;
        inside.queue.set_careful(bound.is_some());
        self.hand.allow(!bound.is_some());
    }

    /// Accepts nothing any more.
    pub(crate) fn close(&self) {
        // Whoever is killed before it is left to the loop to tell them would have them wait for ever.
        let whole = PreemptGuard::new();
        let mut inside = self.inside.lock();
        inside.closed = true;
        inside.queue.set_careful(true);
        drop(inside);
        // There will never be room.
        self.for_ever().waiting_senders.tell(&whole);
    }

    /// Whether it accepts anything.
    pub(crate) fn is_open(&self) -> bool {
        !self.inside.lock().closed
    }

    /// How many messages may wait, and what happens to more.
    pub(crate) fn bound(&self) -> Bound {
        self.inside.lock().bound
    }

    /// Its next actor is to have it alone, with this bound. Whether it may: what waits for the last one is to be dropped first. It was
    /// opened as one actor's own.
    ///
    /// Who sends to the last actor still, and takes the lock after this, finds there that it has ended: the caller has seen that.
    pub(crate) fn let_to_one(&self, bound: Bound) -> bool {
        let mut inside = self.inside.lock();
        let is_empty = self.waiting() == 0;
        if is_empty {
            inside.bound = bound.of_one();
            self.growth.reset();
            // What is counted from here on is that actor's. Relaxed: statistics.
            self.taken.store(0, Ordering::Relaxed);
            self.moves.store(0, Ordering::Relaxed);
            self.let_at.store(clock::now().max(1), Ordering::Relaxed);
        }
        is_empty
    }

    /// When it was let to one actor, in clock ticks; `None` if it is for many.
    pub(crate) fn let_at(&self) -> Option<u64> {
        // Relaxed: a statistic.
        Some(self.let_at.load(Ordering::Relaxed)).filter(|at| *at != 0)
    }

    /// Who opened it last. Alive while the mailbox is open, or a worker or behaviour of that executor is running.
    #[inline(always)]
    pub(crate) fn runner(&self) -> *const Runner {
        // Relaxed: as in `open`.
        self.runner.load(Ordering::Relaxed)
    }

    /// How many messages wait; may be stale, unless a full barrier came before.
    #[inline(always)]
    pub(crate) fn waiting(&self) -> u32 {
        // Relaxed: a hint; whoever must not miss a message looks after a full barrier.
        self.inside.beside().load(Ordering::Relaxed)
    }

    /// Says how many messages wait. The caller holds the lock.
    #[inline(always)]
    pub(crate) fn set_waiting(&self, messages: u32) {
        // Relaxed: as above.
        self.inside.beside().store(messages, Ordering::Relaxed);
    }

    /// So many were taken out. The caller holds the lock.
    #[inline(always)]
    pub(super) fn count_taken(&self, messages: u32) {
        // Relaxed, here and below: statistics, which nothing is inferred from.
        self.taken.store(self.taken.load(Ordering::Relaxed).wrapping_add(messages.into()), Ordering::Relaxed);
    }

    /// How many were taken out since it was opened, or let to one actor.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// It is that core's worker's now. By who has found it there right after moving it, or after another has.
    pub(crate) fn note_core(&self, core: CoreId) {
        if usize::from(self.core.swap(core.index() as u8, Ordering::Relaxed)) != core.index() {
            self.moves.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The core whose worker it belongs to, as far as is known.
    pub(crate) fn core(&self) -> CoreId {
        CoreId::new(self.core.load(Ordering::Relaxed).into()).unwrap_or(CoreId::BOOT)
    }

    /// How often it has gone to another.
    pub(crate) fn moves(&self) -> u32 {
        self.moves.load(Ordering::Relaxed)
    }

    /// The first message has come. The caller holds the lock, or has it in hand.
    #[inline(always)]
    pub(crate) fn note_first(&self) {
        self.patience.begin();
        if stats::timing() {
            // Relaxed: written under the lock, or by the one that has it in hand; a statistic.
            self.since.store(clock::now(), Ordering::Relaxed);
        }
    }

    /// How long the first message waited that was just gulped, in clock ticks; 0 if nobody noted when it came.
    pub(crate) fn waited_ticks(&self) -> u64 {
        // Relaxed: as above. The next first message may have come already; then the answer is too small.
        match self.since.load(Ordering::Relaxed) {
            0 => 0,
            since => clock::now().saturating_sub(since),
        }
    }

    pub(crate) fn is_urgent(&self) -> bool {
        // Relaxed: set before anybody had an address that leads here.
        self.urgent.load(Ordering::Relaxed)
    }

    pub(crate) fn is_pinned(&self) -> bool {
        // Relaxed: changes only while the mailbox is in no table.
        self.pinned.load(Ordering::Relaxed)
    }

    /// Whether nobody but its own worker ever handles its mail.
    pub(crate) fn is_fixed(&self) -> bool {
        // Relaxed: as above.
        self.fixed.load(Ordering::Relaxed)
    }

    /// Whether a worker is handling a batch from here; a thief's hint.
    pub(crate) fn is_being_processed(&self) -> bool {
        // `gulp` decides.
        self.being_processed.hint()
    }

    /// For whoever has counted the first message, or put it down with mail: the worker to wake, and where that should
    /// look. A full barrier is in here.
    #[inline(always)]
    pub(crate) fn owner_after_first_message(&self) -> Place {
        Place::from_bits(self.owner.after_work() as u32)
    }

    /// Where in the table it is, as far as is known.
    #[inline(always)]
    pub(crate) fn place(&self) -> Place {
        Place::from_bits(self.owner.get() as u32)
    }

    /// Whoever opened it is about to be freed, and nobody works for it any more. Nor does this lead there, as in [`Hand::reset`].
    pub(super) fn forget_runner(&self) {
        // Relaxed: as in `open`.
        self.runner.store(core::ptr::null_mut(), Ordering::Relaxed);
    }

    /// Whether `runner` is the one that opened it last.
    pub(crate) fn is_open_for(&self, runner: *const Runner) -> bool {
        core::ptr::eq(self.runner(), runner)
    }

    /// It is empty, closed, and its executor's workers have ended: gives up memory that it has grown by, and is as new.
    pub(crate) fn tidy(&self) {
        self.being_processed.put_down();
        self.hand.reset();
        self.next_guest.store(core::ptr::null_mut(), Ordering::Relaxed);
        if self.inside.lock().queue.capacity_bytes() <= FIRST_SEGMENT_BYTES {
            return;
        }
        if let Some(spare) = Segment::new(FIRST_SEGMENT_BYTES) {
            let gulp = self.inside.lock().queue.gulp(spare);
            // SAFETY: the chain is ours, and empty.
            unsafe { segment::free_chain(gulp.first) };
        }
    }
}
