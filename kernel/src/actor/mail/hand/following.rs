//! What follows a batch in hand: mail beyond what the batch may grow by, in its segment or in others linked to it.
//!
//! Whether a batch goes on with it, or leaves it to another turn, is decided in `run/worker/gulping.rs`.

use core::ptr::NonNull;

use super::{Hand, Held, MOST_GROWTH_ALONE_BYTES, MOST_GROWTH_BYTES, limit_for_batch};
use crate::actor::mail::growth::Growth;
use crate::actor::mail::mailbox::FIRST_SEGMENT_BYTES;
use crate::actor::mail::segment::{self, Segment};
use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::sync::PreemptGuard;

/// A segment is no longer than this only for the sake of having room for several batches.
const MOST_FOR_BATCHES_BYTES: usize = 64 * FIRST_SEGMENT_BYTES;

/// Where a sender may write.
pub(crate) enum Room {
    /// There, as many bytes as were asked for. It must be said if `is_first`: the mailbox rests in hand.
    At { place: NonNull<u8>, is_first: bool },
    /// Nowhere, until there is a segment of so many bytes.
    Needs(usize),
    /// Not before the mailbox has left its worker's lane.
    InLane,
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
        if self.is_in_lane(here) {
            // Though there may be room: what comes here may not be checked, and what is there is.
            return Room::InLane;
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

    /// How long the next segment is, when so many bytes wait here: twice as much, so that the segments of a chain grow, [within limits](Growth). Not with
    /// each one, or a message that an actor sends to itself again and again would need more and more. One that is small has room for
    /// several batches, because it is not worth being linked for each.
    fn next_capacity_bytes(&self, waiting_bytes: usize) -> usize {
        const BATCHES: usize = 8;
        let recent_bytes = self.recent_bytes.load(Ordering::Relaxed);
        let of_batches = (BATCHES * recent_bytes).min(MOST_FOR_BATCHES_BYTES).max(recent_bytes);
        Growth::limited((2 * waiting_bytes).max(of_batches).max(MOST_GROWTH_ALONE_BYTES), waiting_bytes)
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

    /// What is kept here becomes a batch, or goes on being one: all of it if that lies in one segment. Otherwise the batch begins
    /// with the first, and what is sent from now on follows. Returns the batch's first segment, where in it the batch begins and where
    /// it ends there, as `cursor` says then, and whether it is unchecked.
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
    ) -> (NonNull<Segment>, NonNull<u8>, NonNull<u8>, bool) {
        let is_unchecked = self.take_unchecked();
        let mut held = self.held();
        held.seal();
        self.note_most(&held);
        let end = if held.first == held.last {
            cursor.store(held.end.as_ptr(), Ordering::Relaxed);
            self.set_several();
            self.follows.store(false, Ordering::Relaxed);
            // SAFETY: by contract.
            unsafe { self.gate.move_cursor(cursor) };
            let growth = if is_alone { MOST_GROWTH_ALONE_BYTES } else { MOST_GROWTH_BYTES };
            self.gate.set_limit(limit_for_batch(cursor, held.first, growth));
            held.end
        } else {
            // SAFETY: of a chain all but the last are sealed, and that was sealed just now.
            let end = unsafe { Segment::used_end(held.first) };
            cursor.store(end.as_ptr(), Ordering::Relaxed);
            self.keep(Held { first: held.last, begin: held.end, last: held.last, end: held.end });
            self.follows.store(true, Ordering::Relaxed);
            end
        };
        (held.first, held.begin, end, is_unchecked)
    }

    /// As [`Self::note_most`], of what is sole, in a segment that has grown.
    #[inline(always)]
    pub(super) fn note_most_of_sole(&self, segment: NonNull<Segment>, used_bytes: usize) {
        // SAFETY: in hand.
        let bytes = unsafe { segment.as_ref() }.capacity_bytes();
        let recent_bytes = self.recent_bytes.load(Ordering::Relaxed);
        self.recent_bytes.store(used_bytes.max(recent_bytes - recent_bytes / 4), Ordering::Relaxed);
        if bytes > self.most_bytes.load(Ordering::Relaxed) {
            self.most_bytes.store(bytes, Ordering::Relaxed);
        }
        // It is looked at more closely if it may be more than ever.
        if segment::most_in(used_bytes) > self.most_messages.load(Ordering::Relaxed) {
            self.note_more_messages(segment, used_bytes);
        }
    }

    #[cold]
    #[inline(never)]
    fn note_more_messages(&self, mut segment: NonNull<Segment>, used_bytes: usize) {
        let begin = Segment::begin(segment);
        // SAFETY: in hand, used that far, and nothing of it was delivered.
        let messages = unsafe {
            segment.as_mut().set_end(begin.add(used_bytes));
            segment::estimate_chain(segment, begin)
        };
        if messages > self.most_messages.load(Ordering::Relaxed) {
            self.most_messages.store(messages, Ordering::Relaxed);
        }
    }

    /// Notes how much there is. It is sealed.
    fn note_most(&self, held: &Held) {
        // SAFETY: the mail is in hand, and nothing of it was delivered.
        let (bytes, used_bytes, messages) = unsafe {
            let (bytes, used_bytes) = segment::chain_bytes(held.first, held.begin);
            (bytes, used_bytes, segment::estimate(held.first, held.begin, used_bytes))
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
    pub(in crate::actor::mail) fn await_turn(&self) {
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
}
