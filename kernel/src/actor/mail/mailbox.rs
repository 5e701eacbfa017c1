//! Mailboxes: a locked copy queue each, which senders write to and one worker at a time drains.
//!
//! What excludes two workers is `being_processed`, not the slot of the table: a worker may have read a slot
//! just before a thief emptied it. It is set under the lock and cleared outside it, with a release.

use core::cell::Cell;
use core::ptr::NonNull;

use super::bound::Bound;
use super::copy_queue::{CopyQueue, Gulp};
use super::guest_flag::GuestFlag;
use super::hand::Hand;
use super::owner_hint::OwnerHint;
use super::patience::Patience;
use super::place::Place;
use super::processing_flag::ProcessingFlag;
use super::segment::{self, Segment};
use crate::actor::storage::MailboxIndex;
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use crate::arch::clock;
use crate::sched::{self, Setting};
use crate::stats;
use crate::sync::{PreemptGuard, SpinGuard, SpinLock, Waiters};

/// Who runs the actors of a mailbox: an executor, of which nothing is known here but where it lies.
#[repr(C)]
pub(crate) struct Runner {
    _opaque: [u8; 0],
}

/// What senders lock.
pub(crate) struct Inside {
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
pub(crate) struct Mailbox {
    pub inside: SpinLock<Inside>,
    /// How many messages wait: written under the lock, read by anyone.
    waiting: AtomicU32,
    /// When the first of them came, in clock ticks, while that is being timed; else 0.
    since: AtomicU64,
    /// For how long they have waited, and whether that is too long.
    patience: Patience,
    /// A worker is handling a batch from here: what its actors wrote is not published yet.
    being_processed: ProcessingFlag,
    /// What that worker has in hand of it.
    pub(crate) hand: Hand,
    /// It is in the guest list of a worker that is not its owner.
    pub(crate) guest: GuestFlag,
    /// The next in that list.
    pub(crate) next_guest: AtomicPtr<Mailbox>,
    /// Its actors are pinned: thieves pass by.
    pinned: AtomicBool,
    /// Where in the table it is, as far as is known: the bits of a [`Place`].
    pub(super) owner: OwnerHint,
    /// Who waits for room, if it is bounded.
    pub(crate) room: Waiters,
    index: MailboxIndex,
    runner: AtomicPtr<Runner>,
}

/// Bytes of a mailbox's buffer before it has grown.
pub(crate) const FIRST_SEGMENT_BYTES: usize = 1024;

/// What an attempt to gulp came to.
#[derive(Debug)]
pub(crate) enum GulpResult {
    /// A batch with so many messages, and the mailbox is being processed from now on.
    Taken(Gulp, u32),
    /// Nothing was waiting.
    Empty,
    /// Another worker is handling a batch from here.
    Missed,
    /// There is no segment to leave in exchange.
    NoSegment,
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
            patience: Patience::new(),
            being_processed: ProcessingFlag::new(),
            hand: Hand::new(),
            guest: GuestFlag::new(),
            next_guest: AtomicPtr::new(core::ptr::null_mut()),
            pinned: AtomicBool::new(false),
            owner: OwnerHint::new(0),
            room: Waiters::new(),
            index,
            runner: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    pub(crate) fn index(&self) -> MailboxIndex {
        self.index
    }

    /// Opens it for an executor, which has it in this place of its table.
    ///
    /// # Safety
    /// Runners of all mailboxes are of one type, and this one lives until the mailbox was closed and all have ended that work
    /// for it.
    pub(crate) unsafe fn open(&self, runner: *const Runner, place: Place, pinned: bool, bound: Bound) {
        let mut inside = self.inside.lock();
        // Relaxed: published by the lock, and by the address that leads here.
        self.runner.store(runner.cast_mut(), Ordering::Relaxed);
        self.owner.reset(place.bits() as usize);
        self.pinned.store(pinned, Ordering::Relaxed);
        // The last executor's workers have ended, and their lists with them.
        self.guest.reset();
        self.patience.reset();
        inside.closed = false;
        inside.bound = bound;
        inside.most_bytes = inside.queue.capacity_bytes();
        inside.most_messages = 0;
        inside.queue.set_careful(bound.is_some());
        self.hand.allow(!bound.is_some());
    }

    /// Accepts nothing any more.
    pub(crate) fn close(&self) {
        let mut inside = self.inside.lock();
        inside.closed = true;
        inside.queue.set_careful(true);
        drop(inside);
        // There will never be room.
        self.room.tell_all(|| ());
    }

    /// How many messages may wait.
    pub(crate) fn most_waiting(&self) -> u32 {
        self.inside.lock().bound.most()
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
        self.waiting.load(Ordering::Relaxed)
    }

    /// Says how many messages wait. The caller holds the lock.
    #[inline(always)]
    pub(crate) fn set_waiting(&self, messages: u32) {
        // Relaxed: as above.
        self.waiting.store(messages, Ordering::Relaxed);
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

    pub(crate) fn is_pinned(&self) -> bool {
        // Relaxed: changes only while the mailbox is in no table.
        self.pinned.load(Ordering::Relaxed)
    }

    /// Whether a worker is handling a batch from here; a thief's hint.
    pub(crate) fn is_being_processed(&self) -> bool {
        // `gulp` decides.
        self.being_processed.hint()
    }

    /// Takes all that waits, in exchange for the segment in the mailbox's hand or, if there is none, for `spare`.
    #[inline(always)]
    pub(crate) fn gulp(&self, spare: &Cell<Option<NonNull<Segment>>>) -> GulpResult {
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
        let Some(spare) = self.hand.take_spare().or_else(|| spare.take()) else {
            return GulpResult::NoSegment;
        };
        self.being_processed.take();
        inside.most_messages = inside.most_messages.max(messages);
        GulpResult::Taken(self.take_out(inside, spare), messages)
    }

    /// Takes what has come while its batch was handled, in exchange for `spare`, without putting it down. The
    /// caller has handled the batch, and has seen mail.
    #[inline(always)]
    pub(crate) fn gulp_again(&self, spare: NonNull<Segment>) -> (Gulp, u32) {
        let mut inside = self.inside.lock();
        // Nobody else takes messages out while it is being processed, but a bound that drops the oldest.
        let messages = self.waiting();
        inside.most_messages = inside.most_messages.max(messages);
        (self.take_out(inside, spare), messages)
    }

    /// Takes all that waits.
    #[inline(always)]
    fn take_out(&self, mut inside: SpinGuard<'_, Inside>, spare: NonNull<Segment>) -> Gulp {
        if inside.queue.is_careful() {
            return self.take_out_carefully(inside, spare);
        }
        let gulp = inside.queue.gulp_plain(spare);
        self.set_waiting(0);
        gulp
    }

    /// As [`Self::take_out`], of a mailbox that has a bound: whoever waits for room is told, after the lock.
    #[cold]
    #[inline(never)]
    fn take_out_carefully(&self, mut inside: SpinGuard<'_, Inside>, spare: NonNull<Segment>) -> Gulp {
        let gulp = inside.queue.gulp(spare);
        self.set_waiting(0);
        drop(inside);
        self.room.tell_all(|| ());
        gulp
    }

    /// The first message has been written, and nobody was told of it: takes it in hand for the worker on this core, which
    /// will look at it. Whether that is possible.
    #[inline(always)]
    pub(crate) fn take_in_hand(&self, inside: &mut Inside, here: &PreemptGuard) -> bool {
        // It pairs with `done`, as in `gulp`.
        if !self.being_processed.is_free() {
            return false;
        }
        let Some(held) = inside.queue.take_plain(|| self.hand.take_spare()) else { return false };
        self.being_processed.take();
        // SAFETY: the mail was taken out for the worker on this core, which nobody else can do from now on.
        unsafe { self.hand.hold(held, here) };
        true
    }

    /// Its batch was handled, and its gate is closed: takes what has come meanwhile in hand, in exchange for `spare`, without
    /// putting it down. Whether it could; `spare` is the mailbox's then.
    #[inline(always)]
    pub(crate) fn hold_again(&self, spare: NonNull<Segment>, here: &PreemptGuard) -> bool {
        // While a chain was handled a segment of it may have been kept.
        if self.hand.has_spare() {
            return false;
        }
        let mut inside = self.inside.lock();
        let messages = self.waiting();
        // A backlog waits where thieves see it.
        if u64::from(messages) > sched::setting(Setting::ShareBacklog) {
            return false;
        }
        let Some(held) = inside.queue.take_plain(|| Some(spare)) else { return false };
        inside.most_messages = inside.most_messages.max(messages);
        self.set_waiting(0);
        self.note_first();
        // SAFETY: the mail was taken out for the worker on this core, which nobody else can do from now on.
        unsafe { self.hand.hold(held, here) };
        true
    }

    /// Puts mail that waits in hand back in front of the queue, and puts the mailbox down. The caller is on the core that has
    /// it in hand, has taken it from the run list, and tells whoever should handle it.
    pub(crate) fn put_back(&self) {
        let mut inside = self.inside.lock();
        self.hand.close();
        if let Some(held) = self.hand.take_held() {
            // SAFETY: it was in hand, so nothing of it was delivered.
            let messages = unsafe { segment::count_between(Segment::begin(held.segment), held.end) };
            inside.queue.settle_front();
            // SAFETY: as above; settled.
            let emptied = unsafe { inside.queue.prepend(held) };
            self.set_waiting(self.waiting() + messages);
            if let Some(mut emptied) = emptied {
                // SAFETY: nobody else uses it.
                unsafe { emptied.as_mut() }.recycle();
                if !self.hand.keep_spare(emptied) {
                    // SAFETY: empty, and nobody else uses it.
                    unsafe { Segment::free(emptied) };
                }
            }
        }
        self.being_processed.put_down();
    }

    /// Whether mail in hand that waits for its turn has waited for `wait` clock ticks at `now`, has a backlog behind it, or was
    /// worth a hand-over the last time. Notes that it was seen at `now`.
    pub(crate) fn held_may_leave(&self, now: u64, wait: u64) -> bool {
        !self.is_pinned()
            && (self.patience.is_over(now, wait)
                || u64::from(self.waiting()) >= sched::setting(Setting::ShareBacklog)
                || self.patience.pays())
    }

    /// The batch was handled. Whether there is mail again, for which nobody was told.
    #[inline(always)]
    pub(crate) fn done(&self) -> bool {
        // Hands over what the actors wrote; pairs with `gulp`.
        self.being_processed.put_down();
        self.waiting() > 0
    }

    /// For whoever has counted a message and passed a full barrier since: whether a worker has a batch from here in
    /// hand, which will look again.
    #[inline(always)]
    pub(crate) fn is_left_to_holder(&self) -> bool {
        self.being_processed.is_left_to_holder()
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

    /// Whether its own worker would find something to gulp; may be stale. What is another worker's guest is left to that
    /// one, until it has waited too long there, or that one has sent it home.
    #[inline(always)]
    pub(crate) fn is_ripe(&self) -> bool {
        self.waiting() > 0
            && !self.being_processed.hint()
            && (!self.guest.is_set()
                || self.patience.is_tried()
                || self.may_leave(clock::now(), sched::setting_ticks(Setting::ShareWaitMicroseconds)))
    }

    /// Whether a thief, or the owner of a guest, may take it: it has mail that nobody has in hand, and that has waited
    /// for `wait` clock ticks, is a backlog, or was worth a hand-over the last time. May be stale.
    /// Notes that it was seen at `now`, in clock ticks: whoever looks again later finds how long it has waited since.
    pub(crate) fn may_leave(&self, now: u64, wait: u64) -> bool {
        let waiting = self.waiting();
        waiting > 0
            && !self.being_processed.hint()
            && (self.patience.is_over(now, wait)
                || u64::from(waiting) > sched::setting(Setting::ShareBacklog)
                || self.patience.pays())
    }

    /// Whether thieves pass by, because its actors are pinned, or take it once it [`may_leave`](Self::may_leave).
    pub(crate) fn may_be_stolen(&self, now: u64, wait: u64) -> bool {
        !self.is_pinned() && self.may_leave(now, wait)
    }

    /// Whether handing its mail over to another core has paid the last time.
    #[inline(always)]
    pub(crate) fn pays(&self) -> bool {
        self.patience.pays()
    }

    /// Whether its mail was handed over, and is to be timed.
    #[inline(always)]
    pub(crate) fn is_tried(&self) -> bool {
        self.patience.is_tried()
    }

    /// Its mail is being handed over to its owner's core.
    pub(crate) fn hand_over(&self) {
        self.patience.hand_over();
    }

    /// Its mail, handed over to another core, has kept that one busy for so many clock ticks.
    pub(crate) fn note_handed_over(&self, ticks: u64) {
        self.patience.note_handed_over(ticks);
    }

    /// Whether `runner` is the one that opened it last.
    pub(crate) fn is_open_for(&self, runner: *const Runner) -> bool {
        core::ptr::eq(self.runner(), runner)
    }

    /// Takes back messages that were taken from here for an actor that has ended since: they are dropped where the
    /// mailbox's worker meets them or, when it has closed, at the end of its executor. Returns the lock if that worker
    /// must be told, before it is given up.
    ///
    /// # Safety
    /// The chain is the caller's, who gives it up, and nothing in it was delivered.
    #[cold]
    #[must_use]
    pub(crate) unsafe fn take_back(&self, chain: Gulp) -> Option<SpinGuard<'_, Inside>> {
        // SAFETY: by contract.
        let messages = unsafe { segment::count_chain(chain.first, chain.head) };
        if messages == 0 {
            // SAFETY: nothing is in it.
            unsafe { segment::free_chain(chain.first) };
            return None;
        }
        // SAFETY: by contract.
        unsafe { segment::compact(chain.first, chain.head) };
        let mut inside = self.inside.lock();
        // SAFETY: by contract, and compacted.
        unsafe { inside.queue.append(chain.first) };
        let before = self.waiting();
        self.set_waiting(before + messages);
        if before > 0 || inside.closed {
            return None;
        }
        self.note_first();
        Some(inside)
    }

    /// It is empty, closed, and its executor's workers have ended: gives up memory that it has grown by, and is as new.
    pub(crate) fn tidy(&self) {
        self.being_processed.put_down();
        self.hand.close();
        if let Some(spare) = self.hand.take_spare() {
            // SAFETY: empty, and nobody else uses it.
            unsafe { Segment::free(spare) };
        }
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
