//! What a worker has in hand of a mailbox, and the gate through which senders on its core add to it.
//!
//! While a worker handles mail of a mailbox nobody else takes any from there. So a sender that runs on the worker's core
//! may write right behind what the worker has in hand: no lock is needed, because only code on that core touches it, with
//! preemption disabled or as one step (`arch/gate.rs`, `arch/aarch64/append.rs`).
//!
//! - The *gate* says whose core that is. It is open only while the mailbox is being processed by that core's worker, and only
//!   code on that core opens and closes it.
//! - The *cursor* leads to where the next envelope goes: the end of the batch that the worker delivers or the end of what is
//!   kept here. That is mail that waits in the worker's run list, or that *follows* a batch: a batch grows by little while it is
//!   delivered, and what comes beyond that has its turn like other mailboxes' mail. It begins in the last segment of the batch,
//!   where that one ends, and goes on in others, which are linked: nothing is copied, and no lock is needed for however much.
//! - Messages keep their order. A sender adds here only while nothing waits in the mailbox's queue, and the worker takes from
//!   the queue only what comes behind all that it has in hand. Whatever a sender has put into the queue before, from whatever
//!   core, it sees as waiting, or it was taken, and then it lies in front.
//!   The sender may be suspended between its look at what waits and the append, and go on elsewhere. Meanwhile what it has sent
//!   before may go back into the queue. But a gate is open only behind a batch or behind mail that waits in hand, and whoever
//!   begins one takes all of the queue with it.
//! - In hand a mailbox is being delivered from, or waits in the run list, or *rests*: all was delivered, and it is kept in hand
//!   until the worker's turn ends, because the next message often comes soon. That one puts it into the run list. For senders
//!   elsewhere it is being processed all the same: the worker looks for their mail when it puts the mailbox down.
//! - What is in hand and not delivered goes back in front of the queue.
//!
//! Every access is relaxed: one core's, or ordered by the mailbox's lock or its processing flag. Other cores read the gate alone,
//! and never find their own core there; the spare segment, whoever has the lock may take.

use core::ptr::{self, NonNull};

use super::list::{List, Runnable};
use super::mailbox::{FIRST_SEGMENT_BYTES, Mailbox};
use super::segment::{self, Segment};
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};
use crate::arch::gate::Gate;
use crate::sync::PreemptGuard;

/// A batch grows by so much while it is delivered. What its actors send to each other beyond that follows it, or a
/// mailbox whose segment has grown would get more of a turn than others.
const MOST_GROWTH_BYTES: usize = FIRST_SEGMENT_BYTES;

/// By so much if no others wait when it begins.
const MOST_GROWTH_ALONE_BYTES: usize = 4 * FIRST_SEGMENT_BYTES;

/// A segment is no longer than this only for the sake of having room for several batches.
const MOST_FOR_BATCHES_BYTES: usize = 64 * FIRST_SEGMENT_BYTES;

/// Where the buffer ends for senders behind a batch, which ends at `cursor`.
#[inline(always)]
fn limit_for_batch(cursor: &AtomicPtr<u8>, segment: NonNull<Segment>, growth_bytes: usize) -> *mut u8 {
    let most = cursor.load(Ordering::Relaxed).wrapping_add(growth_bytes);
    most.min(Segment::limit(segment).as_ptr())
}

/// What is in hand of one mailbox.
pub(crate) struct Hand {
    /// Where senders on the worker's core append: behind the batch, or behind what is kept here. At rest the first one puts the
    /// mailbox into the run list.
    gate: Gate,
    /// While mail is kept here: the first segment of it. At rest: an empty one. While senders append to a batch: its last.
    segment: AtomicPtr<Segment>,
    /// Where the mail that is kept here ends.
    end: AtomicPtr<u8>,
    /// The next in the run list.
    pub(super) next: AtomicPtr<Mailbox>,
    run_list: AtomicPtr<List<Runnable>>,
    /// It is in the worker's list of what may be at rest.
    is_noted: AtomicBool,
    /// What is kept here, or was until it became a batch, lies in one segment that has not grown, from its beginning on, and
    /// the gate's limit is the segment's.
    is_plain: AtomicBool,
    /// What is kept here follows a batch.
    follows: AtomicBool,
    /// The mailbox has no bound: its gate may be opened.
    may_open: AtomicBool,
    /// Unless that is plain: where the mail that is kept here begins in its first segment, and its last segment.
    begin: AtomicPtr<u8>,
    last: AtomicPtr<Segment>,
    /// An empty segment for the next time, or null.
    spare: AtomicPtr<Segment>,
    /// The most memory in which mail has lain here, and the most messages; many are estimated.
    most_bytes: AtomicUsize,
    /// Bytes of the mail that became a batch of late: the last time, or more, and then it gets less each time.
    recent_bytes: AtomicUsize,
    most_messages: AtomicU32,
    pub(super) next_resting: AtomicPtr<Mailbox>,
}

/// Mail in hand, in one segment or several.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub first: NonNull<Segment>,
    /// Where it begins in the first one.
    pub begin: NonNull<u8>,
    pub last: NonNull<Segment>,
    /// Where the last envelope ends, in the last segment.
    pub end: NonNull<u8>,
}

impl Held {
    /// Writes down how far the last segment is in use.
    pub(super) fn seal(&mut self) {
        // SAFETY: the mail is the caller's.
        unsafe { self.last.as_mut() }.set_end(self.end);
    }
}

/// Where a sender may write.
pub(crate) enum Room {
    /// There, as many bytes as were asked for. It must be said if `is_first`: the mailbox rests in hand.
    At { place: NonNull<u8>, is_first: bool },
    /// Nowhere, until there is a segment of so many bytes.
    Needs(usize),
    /// Not in hand on this core.
    Elsewhere,
}

/// What a batch goes on with.
pub(crate) enum Following {
    /// With nothing: it was all.
    Nothing,
    /// With what follows it, in another segment up to there.
    Segment(NonNull<Segment>, NonNull<u8>),
    /// It has come to its end, and there is more.
    More,
}

impl Hand {
    pub(super) fn new() -> Self {
        Self {
            gate: Gate::closed(),
            segment: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            run_list: AtomicPtr::new(ptr::null_mut()),
            is_noted: AtomicBool::new(false),
            is_plain: AtomicBool::new(false),
            follows: AtomicBool::new(false),
            may_open: AtomicBool::new(false),
            begin: AtomicPtr::new(ptr::null_mut()),
            last: AtomicPtr::new(ptr::null_mut()),
            spare: AtomicPtr::new(ptr::null_mut()),
            most_bytes: AtomicUsize::new(0),
            recent_bytes: AtomicUsize::new(0),
            most_messages: AtomicU32::new(0),
            next_resting: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// An executor begins: whether the gate may be opened from now on.
    pub(super) fn allow(&self, may_open: bool) {
        self.may_open.store(may_open, Ordering::Relaxed);
        self.most_bytes.store(0, Ordering::Relaxed);
        self.recent_bytes.store(0, Ordering::Relaxed);
        self.most_messages.store(0, Ordering::Relaxed);
    }

    /// Where senders on the worker's core append.
    #[inline(always)]
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Room for `bytes` behind what is in hand, if that is on the caller's core and its segment is long enough. The caller
    /// must write an envelope of that size there. It has seen nothing wait in the queue.
    #[inline(always)]
    pub(crate) fn reserve(&self, bytes: usize, _here: &PreemptGuard) -> Option<NonNull<u8>> {
        // The cursor leads to the end in a batch of this core's worker, or to the one here.
        if self.gate.is_open() { self.gate.reserve(bytes) } else { None }
    }

    /// As [`Self::reserve`], if the mailbox rests in hand. What is written there is [said](Self::wake) then.
    #[inline(always)]
    pub(crate) fn reserve_at_rest(&self, bytes: usize, _here: &PreemptGuard) -> Option<NonNull<u8>> {
        if self.gate.is_at_rest() { self.gate.reserve(bytes) } else { None }
    }

    /// Whether it is in hand on the caller's core, and senders append to it.
    #[inline(always)]
    pub(crate) fn is_here(&self, _here: &PreemptGuard) -> bool {
        self.gate.is_open() || self.gate.is_at_rest()
    }

    /// As [`Self::reserve`] and [`Self::reserve_at_rest`], where they have found none: beyond what a batch may grow by, or in
    /// another segment, which is linked to the last: `fresh`, or the spare one.
    pub(crate) fn make_room(
        &self,
        bytes: usize,
        fresh: &mut Option<NonNull<Segment>>,
        here: &PreemptGuard,
    ) -> Room {
        let is_first = self.gate.is_at_rest();
        if !is_first && !self.gate.is_open() {
            return Room::Elsewhere;
        }
        if !self.gate.leads_to(&self.end) {
            self.follow_batch(here);
        }
        if let Some(place) = self.gate.reserve(bytes) {
            return Room::At { place, is_first };
        }
        let mut held = self.held();
        held.seal();
        // SAFETY: the mail is what is in hand, and was sealed just now.
        let waiting_bytes = unsafe { segment::chain_used_bytes(held.first, held.begin) };
        let capacity = self.next_capacity_bytes(waiting_bytes).max(bytes);
        let least = MOST_GROWTH_ALONE_BYTES.max(bytes);
        let Some(segment) = fresh.take().or_else(|| self.take_spare_of(least)) else {
            return Room::Needs(capacity);
        };
        // SAFETY: what is in hand is this core's, which the caller has found out.
        unsafe { held.last.as_mut() }.next = segment.as_ptr();
        held.last = segment;
        held.end = Segment::begin(segment);
        self.keep(held);
        self.gate.set_limit(Segment::limit(segment).as_ptr());
        match self.gate.reserve(bytes) {
            Some(place) => Room::At { place, is_first },
            // It was made for a shorter message, before the caller was elsewhere.
            None => Room::Needs(capacity),
        }
    }

    /// How long the next segment is, when so many bytes wait here: twice as much, so that the segments of a chain grow. Not with
    /// each one, or a message that an actor sends to itself again and again would need more and more. One that is small has room for
    /// several batches, because it is not worth being linked for each.
    fn next_capacity_bytes(&self, waiting_bytes: usize) -> usize {
        const BATCHES: usize = 8;
        let recent_bytes = self.recent_bytes.load(Ordering::Relaxed);
        let of_batches = (BATCHES * recent_bytes).min(MOST_FOR_BATCHES_BYTES).max(recent_bytes);
        (2 * waiting_bytes).max(of_batches).max(MOST_GROWTH_ALONE_BYTES)
    }

    /// The spare segment, if it has room for `bytes`.
    fn take_spare_of(&self, bytes: usize) -> Option<NonNull<Segment>> {
        let spare = self.take_spare()?;
        // SAFETY: nobody else has it.
        if unsafe { spare.as_ref() }.capacity_bytes() >= bytes {
            return Some(spare);
        }
        self.spare.store(spare.as_ptr(), Ordering::Relaxed);
        None
    }

    /// From now on what is appended is kept here, and follows the batch to whose end the cursor leads.
    fn follow_batch(&self, _here: &PreemptGuard) {
        // SAFETY: while it is open and the cursor leads elsewhere that is the end of a batch, in the segment that was noted
        // when it began.
        let (segment, end) = unsafe { (self.noted_segment(), self.gate.place()) };
        self.keep(Held { first: segment, begin: end, last: segment, end });
        self.follows.store(true, Ordering::Relaxed);
        // SAFETY: the end is in the segment, and this is never freed.
        unsafe { self.gate.move_cursor(&self.end) };
        self.gate.set_limit(Segment::limit(segment).as_ptr());
    }

    /// # Safety
    /// One was noted, and is what is in hand's.
    #[inline(always)]
    unsafe fn noted_segment(&self) -> NonNull<Segment> {
        // SAFETY: by contract.
        unsafe { NonNull::new_unchecked(self.segment.load(Ordering::Relaxed)) }
    }

    /// The mail that is kept here.
    fn held(&self) -> Held {
        // SAFETY: only asked while there is some, if only an empty segment.
        unsafe {
            let (first, end) =
                (self.noted_segment(), NonNull::new_unchecked(self.end.load(Ordering::Relaxed)));
            if self.is_plain() {
                return Held { first, begin: Segment::begin(first), last: first, end };
            }
            Held {
                first,
                begin: NonNull::new_unchecked(self.begin.load(Ordering::Relaxed)),
                last: NonNull::new_unchecked(self.last.load(Ordering::Relaxed)),
                end,
            }
        }
    }

    /// Keeps mail here that is not plain.
    fn keep(&self, held: Held) {
        self.is_plain.store(false, Ordering::Relaxed);
        self.segment.store(held.first.as_ptr(), Ordering::Relaxed);
        self.begin.store(held.begin.as_ptr(), Ordering::Relaxed);
        self.last.store(held.last.as_ptr(), Ordering::Relaxed);
        self.end.store(held.end.as_ptr(), Ordering::Relaxed);
    }

    /// Whether what is kept here, or was until it became a batch that nothing follows, is a segment that has not grown, used
    /// from its beginning on.
    #[inline(always)]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain.load(Ordering::Relaxed)
    }

    /// Mail has come for `mailbox`, whose hand this is, and which rests in it: its worker comes to it.
    #[inline(always)]
    pub(crate) fn wake(&self, mailbox: &Mailbox, _here: &PreemptGuard) {
        self.gate.wake();
        // It is a first message, and nothing that was seen before has waited since.
        mailbox.note_first();
        // SAFETY: set when it was taken, to the list of the worker that has it in hand.
        unsafe { (*self.run_list.load(Ordering::Relaxed)).push(mailbox) };
    }

    /// The first message has gone into the queue, because there was no room for it here: if the mailbox rests in hand on this
    /// core, its worker comes to it. Whether it does.
    #[inline(always)]
    pub(crate) fn wake_from_rest(&self, mailbox: &Mailbox, here: &PreemptGuard) -> bool {
        let rests = self.gate.is_at_rest();
        if rests {
            self.wake(mailbox, here);
        }
        rests
    }

    /// The mailbox comes to rest in hand, with the segment that its mail lay in, which is empty now. Returns whether it must be put
    /// into the worker's list of what may be at rest.
    ///
    /// # Safety
    /// The caller is the worker that has it in hand, and nothing of it is left. Its gate is open. What was here is
    /// plain, or the segment was [noted](Self::note_emptied).
    #[inline(always)]
    pub(crate) unsafe fn rest(&self) -> bool {
        // SAFETY: by contract the batch was what is noted here.
        let begin = Segment::begin(unsafe { self.noted_segment() });
        self.end.store(begin.as_ptr(), Ordering::Relaxed);
        // SAFETY: by contract; the end is in the segment, and this is never freed.
        unsafe { self.gate.move_cursor(&self.end) };
        self.gate.rest();
        let is_noted = self.is_noted.load(Ordering::Relaxed);
        if !is_noted {
            self.is_noted.store(true, Ordering::Relaxed);
        }
        !is_noted
    }

    /// This segment is all that there is, and empty, or used from its beginning on.
    #[inline(always)]
    pub(crate) fn note_emptied(&self, segment: NonNull<Segment>) {
        self.segment.store(segment.as_ptr(), Ordering::Relaxed);
        self.begin.store(Segment::begin(segment).as_ptr(), Ordering::Relaxed);
        self.last.store(segment.as_ptr(), Ordering::Relaxed);
        self.gate.set_limit(Segment::limit(segment).as_ptr());
        // SAFETY: the segment is what is in hand's.
        let has_grown = unsafe { segment.as_ref() }.capacity_bytes() > MOST_GROWTH_BYTES;
        self.is_plain.store(!has_grown, Ordering::Relaxed);
    }

    /// The list that the mailbox goes into when a message comes while it rests.
    ///
    /// # Safety
    /// The list is that of the worker that has the mailbox in hand, and lives until it is put down.
    #[inline(always)]
    pub(crate) unsafe fn set_run_list(&self, run_list: &List<Runnable>) {
        self.run_list.store(ptr::from_ref(run_list).cast_mut(), Ordering::Relaxed);
    }

    /// The mailbox was taken out of the list of what may be at rest. If it rests it must be put down: the gate is closed, and the
    /// segment stays here for the next time.
    pub(crate) fn end_rest(&self) -> bool {
        self.is_noted.store(false, Ordering::Relaxed);
        let rests = self.gate.is_at_rest();
        if rests {
            self.close();
            // SAFETY: it rests with that segment, which is empty, and nobody else has it from now on.
            unsafe { self.keep_larger(self.noted_segment()) };
        }
        rests
    }

    /// Whether it is in the list of what may be at rest.
    #[inline(always)]
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted.load(Ordering::Relaxed)
    }

    /// Opens the gate for senders on this core: they write where `cursor` says, up to the end of `segment`, or less far behind a
    /// batch that is being delivered.
    ///
    /// # Safety
    /// The caller is on the core whose worker has the mailbox in hand. `cursor` points into `segment`, behind its last
    /// envelope, and lives until the gate is closed or the cursor moved.
    #[inline(always)]
    pub(crate) unsafe fn open_for_batch(
        &self,
        cursor: &AtomicPtr<u8>,
        segment: NonNull<Segment>,
        _here: &PreemptGuard,
    ) {
        if self.may_open.load(Ordering::Relaxed) {
            self.is_plain.store(false, Ordering::Relaxed);
            self.segment.store(segment.as_ptr(), Ordering::Relaxed);
            // SAFETY: by contract.
            unsafe { self.gate.open(cursor, limit_for_batch(cursor, segment, MOST_GROWTH_BYTES)) };
        }
    }

    /// Opens the gate for senders on this core: what they write follows a batch of several segments, of which `last` is the
    /// last, and sealed.
    ///
    /// # Safety
    /// The caller is on the core whose worker has the mailbox in hand, and the batch is that one's.
    #[cold]
    pub(crate) unsafe fn open_behind_chain(&self, last: NonNull<Segment>, _here: &PreemptGuard) {
        if self.may_open.load(Ordering::Relaxed) {
            // SAFETY: by contract it is alive, and no longer written to.
            let end = unsafe { Segment::used_end(last) };
            self.keep(Held { first: last, begin: end, last, end });
            self.follows.store(true, Ordering::Relaxed);
            // SAFETY: by contract; the end is in the segment, and this is never freed.
            unsafe { self.gate.open(&self.end, Segment::limit(last).as_ptr()) };
        }
    }

    /// The next envelope goes where `cursor` says, the end of another batch in the same segment, unless mail is kept here that
    /// follows.
    ///
    /// # Safety
    /// As for [`Self::open_for_batch`].
    pub(crate) unsafe fn move_to_batch(&self, cursor: &AtomicPtr<u8>) {
        if !self.follows() {
            // SAFETY: by contract.
            unsafe { self.gate.move_cursor(cursor) };
        }
    }

    /// Plain mail that is kept here becomes a batch, which ends where `cursor` says. Returns its segment.
    ///
    /// # Safety
    /// As for [`Self::open_for_batch`], and there is plain mail.
    #[inline(always)]
    pub(crate) unsafe fn become_plain_batch(&self, cursor: &AtomicPtr<u8>) -> NonNull<Segment> {
        cursor.store(self.end.load(Ordering::Relaxed), Ordering::Relaxed);
        // SAFETY: by contract. A plain segment is not longer than a batch may grow.
        unsafe {
            self.gate.move_cursor(cursor);
            self.noted_segment()
        }
    }

    /// What is kept here becomes a batch, or goes on being one: all of it if that lies in one segment. Otherwise the batch begins
    /// with the first, and what is sent from now on follows. The batch begins where this says, and ends where `cursor` does.
    /// It may grow by more if it `is_alone`: no others wait.
    ///
    /// # Safety
    /// As for [`Self::open_for_batch`], and there is mail here.
    #[cold]
    #[inline(never)]
    pub(crate) unsafe fn become_batch(
        &self,
        cursor: &AtomicPtr<u8>,
        is_alone: bool,
    ) -> (NonNull<Segment>, NonNull<u8>) {
        let mut held = self.held();
        held.seal();
        self.note_most(&held);
        if held.first == held.last {
            cursor.store(held.end.as_ptr(), Ordering::Relaxed);
            self.is_plain.store(false, Ordering::Relaxed);
            self.follows.store(false, Ordering::Relaxed);
            // SAFETY: by contract.
            unsafe { self.gate.move_cursor(cursor) };
            let growth = if is_alone { MOST_GROWTH_ALONE_BYTES } else { MOST_GROWTH_BYTES };
            self.gate.set_limit(limit_for_batch(cursor, held.first, growth));
        } else {
            // SAFETY: of a chain all but the last are sealed, and that was sealed just now.
            cursor.store(unsafe { Segment::used_end(held.first) }.as_ptr(), Ordering::Relaxed);
            self.keep(Held { first: held.last, begin: held.end, last: held.last, end: held.end });
            self.follows.store(true, Ordering::Relaxed);
        }
        (held.first, held.begin)
    }

    /// Notes how much there is. It is sealed.
    fn note_most(&self, held: &Held) {
        // SAFETY: the mail is in hand, and nothing of it was delivered.
        let (bytes, used_bytes, messages) = unsafe {
            (
                segment::chain_capacity_bytes(held.first),
                segment::chain_used_bytes(held.first, held.begin),
                segment::estimate_chain(held.first, held.begin),
            )
        };
        let recent_bytes = self.recent_bytes.load(Ordering::Relaxed);
        self.recent_bytes.store(used_bytes.max(recent_bytes - recent_bytes / 4), Ordering::Relaxed);
        if bytes > self.most_bytes.load(Ordering::Relaxed) {
            self.most_bytes.store(bytes, Ordering::Relaxed);
        }
        if messages > self.most_messages.load(Ordering::Relaxed) {
            self.most_messages.store(messages, Ordering::Relaxed);
        }
    }

    /// The most memory in which mail has lain here since [`Self::allow`], and the most messages that have. Of more than a few the number is
    /// an estimate, and not too low.
    pub(crate) fn most(&self) -> (usize, u32) {
        (self.most_bytes.load(Ordering::Relaxed), self.most_messages.load(Ordering::Relaxed))
    }

    /// Whether what is kept here follows a batch.
    #[inline(always)]
    pub(crate) fn follows(&self) -> bool {
        self.follows.load(Ordering::Relaxed)
    }

    /// The batch has come to the end of `segment`: what is next, if senders have appended behind it.
    pub(crate) fn following(&self, segment: NonNull<Segment>) -> Following {
        let held = self.held();
        if segment != held.first {
            // SAFETY: a segment of the batch's; those before the one in which the rest begins are linked.
            let next = unsafe { NonNull::new_unchecked(segment.as_ref().next) };
            // SAFETY: sealed when the batch began.
            let end = if next == held.first { held.begin } else { unsafe { Segment::used_end(next) } };
            return Following::Segment(next, end);
        }
        if held.begin == held.end && held.first == held.last {
            self.follows.store(false, Ordering::Relaxed);
            return Following::Nothing;
        }
        Following::More
    }

    /// What has followed a batch, which is over, waits for its turn.
    pub(super) fn await_turn(&self) {
        self.follows.store(false, Ordering::Relaxed);
    }

    /// Seals what follows the batch, if anything may: nothing is appended any more.
    pub(crate) fn seal_following(&self) -> bool {
        let follows = self.follows.swap(false, Ordering::Relaxed);
        if follows {
            self.held().seal();
        }
        follows
    }

    /// Closes the gate. The caller is on its core, or it is closed already.
    #[inline(always)]
    pub(crate) fn close(&self) {
        self.gate.close();
    }

    /// Takes the empty segment that is kept for the next time.
    #[inline(always)]
    pub(crate) fn take_spare(&self) -> Option<NonNull<Segment>> {
        let spare = NonNull::new(self.spare.load(Ordering::Relaxed))?;
        self.spare.store(ptr::null_mut(), Ordering::Relaxed);
        Some(spare)
    }

    /// Keeps an empty segment for the next time, unless there is one. Whether it was kept.
    #[inline(always)]
    pub(crate) fn keep_spare(&self, segment: NonNull<Segment>) -> bool {
        let has_none = self.spare.load(Ordering::Relaxed).is_null();
        if has_none {
            self.spare.store(segment.as_ptr(), Ordering::Relaxed);
        }
        has_none
    }

    /// Keeps an empty segment for the next time, or the one there is if that is larger. The other one is freed.
    ///
    /// # Safety
    /// The segment is as good as new, and the caller's, who gives it up.
    pub(super) unsafe fn keep_larger(&self, segment: NonNull<Segment>) {
        if self.keep_spare(segment) {
            return;
        }
        if let Some(kept) = self.take_spare() {
            // SAFETY: both are empty, and nobody else has them.
            unsafe {
                let is_larger = segment.as_ref().capacity_bytes() > kept.as_ref().capacity_bytes();
                let (larger, smaller) = if is_larger { (segment, kept) } else { (kept, segment) };
                self.keep_spare(larger);
                Segment::free(smaller);
            }
        }
    }

    /// Mail comes into hand that waits for its turn, and the gate is opened.
    ///
    /// # Safety
    /// The caller is on the core whose worker has the mailbox in hand from now on, and gives up the mail.
    #[inline(always)]
    pub(super) unsafe fn hold(&self, held: Held, _here: &PreemptGuard) {
        if held.first == held.last && held.begin == Segment::begin(held.first) {
            self.note_emptied(held.first);
            self.end.store(held.end.as_ptr(), Ordering::Relaxed);
        } else {
            self.keep(held);
        }
        if self.may_open.load(Ordering::Relaxed) {
            // SAFETY: by contract; the end is in the segment, and this is never freed.
            unsafe { self.gate.open(&self.end, Segment::limit(held.last).as_ptr()) };
        }
    }

    /// The mail that waits for its turn goes elsewhere: nothing is in hand any more.
    pub(super) fn give_up(&self) -> Held {
        self.close();
        let mut held = self.held();
        held.seal();
        held
    }

    /// It is nobody's any more.
    pub(super) fn reset(&self) {
        self.close();
        self.is_plain.store(false, Ordering::Relaxed);
        self.follows.store(false, Ordering::Relaxed);
        if let Some(spare) = self.take_spare() {
            // SAFETY: empty, and nobody else uses it.
            unsafe { Segment::free(spare) };
        }
    }
}
