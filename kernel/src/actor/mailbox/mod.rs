//! Mailboxes: a locked copy queue each, which senders write to and one worker at a time drains.

pub(super) mod directory;

use super::copy_queue::{CopyQueue, Gulp};
use super::executor::{ExecutorHandle, Shared};
use super::segment::Segment;
use super::side_queue;
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use crate::sync::SpinLock;
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
}

/// One mailbox. On cache lines of its own: senders from every core write to it.
#[repr(align(128))]
pub(super) struct Mailbox {
    pub inside: SpinLock<Inside>,
    /// How many messages wait, for those who look without the lock.
    waiting: AtomicU32,
    /// A worker is handling a batch from here: what its actors wrote is not published yet.
    being_processed: AtomicBool,
    /// Whose range of the table it is in, as far as is known: a worker's number.
    owner: AtomicU32,
    /// Its actors are pinned: thieves pass by.
    pinned: AtomicBool,
    index: MailboxIndex,
    executor: AtomicPtr<Shared>,
}

/// What an attempt to gulp came to.
pub(super) enum GulpResult {
    /// A batch, and the mailbox is being processed from now on.
    Taken(Gulp),
    /// Nothing was waiting.
    Empty,
    /// Another worker is handling a batch from here.
    Missed,
}

impl Mailbox {
    pub(super) fn new(index: MailboxIndex, segment: NonNull<Segment>) -> Self {
        Self {
            inside: SpinLock::new(Inside { queue: CopyQueue::new(segment), closed: true }),
            waiting: AtomicU32::new(0),
            being_processed: AtomicBool::new(false),
            owner: AtomicU32::new(0),
            pinned: AtomicBool::new(false),
            index,
            executor: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    pub(super) fn index(&self) -> MailboxIndex {
        self.index
    }

    /// Opens it for an executor, whose worker `owner` has it in its range.
    pub(super) fn open(&self, executor: &Shared, owner: usize, pinned: bool) {
        let mut inside = self.inside.lock();
        // Relaxed: published by the lock, and by the address that leads here.
        self.executor.store(core::ptr::from_ref(executor).cast_mut(), Ordering::Relaxed);
        self.owner.store(owner as u32, Ordering::Relaxed);
        self.pinned.store(pinned, Ordering::Relaxed);
        inside.closed = false;
    }

    /// The executor that it is open for.
    pub(super) fn executor(&self) -> ExecutorHandle {
        // SAFETY: called by behaviours only, while which their executor exists.
        unsafe { ExecutorHandle::of(self.shared()) }
    }

    /// # Safety
    /// The mailbox is open, and stays so.
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

    pub(super) fn is_pinned(&self) -> bool {
        self.pinned.load(Ordering::Relaxed)
    }

    /// Whether a worker is handling a batch from here; a thief's hint.
    pub(super) fn is_being_processed(&self) -> bool {
        // Relaxed: a hint; `gulp` decides.
        self.being_processed.load(Ordering::Relaxed)
    }

    /// The worker whose range it is in, as far as is known.
    #[inline(always)]
    pub(super) fn owner(&self) -> usize {
        // Relaxed: a hint; after a steal the thief looks at the mailbox again, see `steal`.
        self.owner.load(Ordering::Relaxed) as usize
    }

    pub(super) fn set_owner(&self, worker: usize) {
        // Relaxed: the thief's full barrier follows.
        self.owner.store(worker as u32, Ordering::Relaxed);
    }

    /// Takes all that waits, in exchange for `spare`.
    pub(super) fn gulp(&self, spare: NonNull<Segment>) -> GulpResult {
        let mut inside = self.inside.lock();
        // Acquire: pairs with the release in `done`, so that this worker sees what the actors wrote while
        // another worker handled their last batch. The lock alone would not do: that worker never took it
        // after its batch.
        if self.being_processed.load(Ordering::Acquire) {
            return GulpResult::Missed;
        }
        if inside.queue.messages() == 0 {
            return GulpResult::Empty;
        }
        // Relaxed: read under the lock by other gulpers.
        self.being_processed.store(true, Ordering::Relaxed);
        let gulp = inside.queue.gulp(spare);
        self.set_waiting(0);
        GulpResult::Taken(gulp)
    }

    /// Whether `executor` is the one that opened it last.
    pub(super) fn is_open_for(&self, executor: NonNull<Shared>) -> bool {
        // Relaxed: as in `open`.
        self.executor.load(Ordering::Relaxed) == executor.as_ptr()
    }

    /// Drops what is in it, for it is closed and its executor's workers have ended. Returns how many
    /// messages that were.
    pub(super) fn clear(&self) -> u64 {
        let mut inside = self.inside.lock();
        let mut dropped = 0;
        let mut next = NonNull::new(inside.queue.take_segments().as_ptr());
        let mut kept: Option<NonNull<Segment>> = None;
        while let Some(mut segment) = next {
            // SAFETY: the queue's segments are ours under the lock; what is in them was never delivered.
            unsafe {
                next = NonNull::new(segment.as_ref().next);
                let begin = Segment::begin(segment);
                dropped += side_queue::drop_envelopes(begin, begin.add(segment.as_ref().used_bytes));
                if kept.is_none() {
                    segment.as_mut().recycle();
                    kept = Some(segment);
                } else {
                    Segment::free(segment);
                }
            }
        }
        if let Some(segment) = kept {
            inside.queue = CopyQueue::new(segment);
        }
        self.set_waiting(0);
        self.being_processed.store(false, Ordering::Relaxed);
        dropped
    }

    /// The batch was handled.
    pub(super) fn done(&self) {
        // Release: hands over what the actors wrote; pairs with the acquire in `gulp`.
        self.being_processed.store(false, Ordering::Release);
    }
}
