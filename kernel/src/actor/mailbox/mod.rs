//! Mailboxes: a locked copy queue each, which senders write to and one worker at a time drains.
//!
//! What excludes two workers is `being_processed`, not the slot of the table: a worker may have read a slot
//! just before a thief emptied it. It is set under the lock and cleared outside it, with a release.

pub(super) mod bound;
pub(super) mod directory;

use crate::actor::copy_queue::{CopyQueue, Gulp};
use crate::actor::segment::{self, Segment};
use crate::actor::shared::Shared;
use crate::actor::table::Place;
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::arch::clock;
use crate::sync::{InHand, OwnerHint, SpinLock};
use bound::Bound;
use core::ptr::NonNull;

/// A mailbox's number in the directory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MailboxIndex(u16);

impl MailboxIndex {
    pub(super) const fn from_bits(bits: u16) -> Self {
        Self(bits)
    }

    /// The number.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// What senders lock.
pub(super) struct Inside {
    pub queue: CopyQueue,
    /// Its executor has stopped, or is stopping: nothing is accepted.
    pub closed: bool,
    pub bound: Bound,
    /// The most memory that the queue has had, and the most messages that were found waiting.
    pub most_bytes: usize,
    pub most_messages: u32,
}

/// One mailbox. On cache lines of its own: senders from every core write to it.
#[repr(align(128))]
pub(super) struct Mailbox {
    pub inside: SpinLock<Inside>,
    /// How many messages wait: written under the lock, read by anyone.
    waiting: AtomicU32,
    /// When the first of them came, in clock ticks, while that is being timed; else 0.
    since: AtomicU64,
    /// A worker is handling a batch from here: what its actors wrote is not published yet.
    being_processed: InHand,
    /// Its actors are pinned: thieves pass by.
    pinned: AtomicBool,
    /// Where in the table it is, as far as is known: the bits of a [`Place`].
    pub(super) owner: OwnerHint,
    index: MailboxIndex,
    executor: AtomicPtr<Shared>,
}

/// What an attempt to gulp came to.
#[derive(Debug)]
pub(super) enum GulpResult {
    /// A batch with so many messages, and the mailbox is being processed from now on.
    Taken(Gulp, u32),
    /// Nothing was waiting.
    Empty,
    /// Another worker is handling a batch from here.
    Missed,
}

impl Mailbox {
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
            inside: SpinLock::new(inside),
            waiting: AtomicU32::new(0),
            since: AtomicU64::new(0),
            being_processed: InHand::new(),
            pinned: AtomicBool::new(false),
            owner: OwnerHint::new(0),
            index,
            executor: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    pub(super) fn index(&self) -> MailboxIndex {
        self.index
    }

    /// Opens it for an executor, which has it in this place of its table.
    pub(super) fn open(&self, executor: *const Shared, place: Place, pinned: bool, bound: Bound) {
        let mut inside = self.inside.lock();
        // Relaxed: published by the lock, and by the address that leads here.
        self.executor.store(executor.cast_mut(), Ordering::Relaxed);
        self.owner.reset(place.bits() as usize);
        self.pinned.store(pinned, Ordering::Relaxed);
        inside.closed = false;
        inside.bound = bound;
        inside.most_bytes = inside.queue.capacity_bytes();
        inside.most_messages = 0;
        inside.queue.set_careful(bound.is_some());
    }

    /// Accepts nothing any more.
    pub(super) fn close(&self) {
        let mut inside = self.inside.lock();
        inside.closed = true;
        inside.queue.set_careful(true);
    }

    /// # Safety
    /// The mailbox is open, and stays so, or a worker or behaviour of its executor is running.
    #[inline(always)]
    pub(super) unsafe fn shared(&self) -> &Shared {
        // SAFETY: by contract the executor that opened it exists.
        // Relaxed: as in `open`.
        unsafe { &*self.executor.load(Ordering::Relaxed) }
    }

    /// How many messages wait; may be old, unless a full barrier came before.
    #[inline(always)]
    pub(super) fn waiting(&self) -> u32 {
        // Relaxed: a hint; who must not miss a message looks after a full barrier.
        self.waiting.load(Ordering::Relaxed)
    }

    /// Says how many messages wait. The caller holds the lock.
    #[inline(always)]
    pub(super) fn set_waiting(&self, messages: u32) {
        // Relaxed: as above.
        self.waiting.store(messages, Ordering::Relaxed);
    }

    /// The first message has come. The caller holds the lock.
    pub(super) fn note_first(&self) {
        // Relaxed: written under the lock; a statistic.
        self.since.store(clock::now(), Ordering::Relaxed);
    }

    /// How long the first message waited that was just gulped, in clock ticks; 0 if nobody noted when it came.
    pub(super) fn waited_ticks(&self) -> u64 {
        // Relaxed: as above. The next first message may have come already; then the answer is too small.
        match self.since.load(Ordering::Relaxed) {
            0 => 0,
            since => clock::now().saturating_sub(since),
        }
    }

    pub(super) fn is_pinned(&self) -> bool {
        // Relaxed: changes only while the mailbox is in no table.
        self.pinned.load(Ordering::Relaxed)
    }

    /// Whether a worker is handling a batch from here; a thief's hint.
    pub(super) fn is_being_processed(&self) -> bool {
        // `gulp` decides.
        self.being_processed.hint()
    }

    /// Takes all that waits, in exchange for `spare`.
    pub(super) fn gulp(&self, spare: NonNull<Segment>) -> GulpResult {
        let mut inside = self.inside.lock();
        // Pairs with `done`, so that this worker sees what the actors wrote while
        // another worker handled their last batch. The lock alone would not do: that worker never took it
        // after its batch.
        if !self.being_processed.is_free() {
            return GulpResult::Missed;
        }
        let messages = self.waiting();
        if messages == 0 {
            return GulpResult::Empty;
        }
        self.being_processed.take();
        inside.most_messages = inside.most_messages.max(messages);
        let gulp = inside.queue.gulp(spare);
        self.set_waiting(0);
        GulpResult::Taken(gulp, messages)
    }

    /// Takes what has come while its batch was handled, in exchange for `spare`, without putting it down. The
    /// caller has handled the batch, and has seen mail.
    pub(super) fn gulp_again(&self, spare: NonNull<Segment>) -> (Gulp, u32) {
        let mut inside = self.inside.lock();
        // Nobody else takes messages out while it is being processed, but a bound that drops the oldest.
        let messages = self.waiting();
        inside.most_messages = inside.most_messages.max(messages);
        let gulp = inside.queue.gulp(spare);
        self.set_waiting(0);
        (gulp, messages)
    }

    /// The batch was handled. Whether there is mail again, for which nobody was told.
    #[inline(always)]
    pub(super) fn done(&self) -> bool {
        // Hands over what the actors wrote; pairs with `gulp`.
        self.being_processed.put_down();
        self.waiting() > 0
    }

    /// For who has counted a message and passed a full barrier since: whether a worker has a batch from here in
    /// hand, which will look again.
    #[inline(always)]
    pub(super) fn is_left_to_holder(&self) -> bool {
        self.being_processed.is_left_to_holder()
    }

    /// Whether a worker would find something to gulp; may be old.
    #[inline(always)]
    pub(super) fn is_ripe(&self) -> bool {
        self.waiting() > 0 && !self.being_processed.hint()
    }

    /// Whether `executor` is the one that opened it last.
    pub(super) fn is_open_for(&self, executor: *const Shared) -> bool {
        // Relaxed: as in `open`.
        core::ptr::eq(self.executor.load(Ordering::Relaxed), executor)
    }

    /// Drops what is in it, for it is closed and its executor's workers have ended. Returns how many
    /// messages that were.
    pub(super) fn clear(&self) -> u64 {
        let Some(spare) = Segment::new(directory::FIRST_SEGMENT_BYTES) else {
            return self.clear_in_place();
        };
        let gulp = self.inside.lock().queue.gulp(spare);
        self.set_waiting(0);
        self.being_processed.put_down();
        // SAFETY: the chain is ours, and nothing in it was delivered. Outside the lock, for dropping a message
        // runs the user's code.
        unsafe { segment::drop_chain(gulp.first, gulp.head) }
    }

    /// [`Self::clear`] without memory for a spare segment.
    #[cold]
    fn clear_in_place(&self) -> u64 {
        let mut dropped = 0;
        while let Some(envelope) = bound::take_oldest(self) {
            envelope.drop_message();
            dropped += 1;
        }
        self.being_processed.put_down();
        dropped
    }
}
