//! The copy queue: where senders append envelopes, and which is taken whole.
//!
//! Append-only, then drain-only: the "gulp discipline" of C∀. Envelopes go to the end of the last segment.
//! When that is full the sender leaves the lock, allocates one twice as large as all before it together (or less, if that is much: [`Growth`]), and
//! links it: nothing is copied, and the lock is never held over an allocation. The worker gives its empty
//! segment in exchange for the whole chain, and keeps the largest one for the next exchange. That one alone
//! is larger than what overflowed, so the sizes grow until every load fits into one segment, and then nothing
//! is allocated at all, unless more than 256 KiB wait in a mailbox. (Were it only as large as all before, a chain of two would leave a segment behind that
//! is as small as the first, and each gulp would cost another allocation, for ever.)
//!
//! A short message where something waits takes one comparison with `fast_limit` (`arch/locked_append`), any other looks at the parts of it. A queue in which nothing waits, whose first message
//! somebody must be told of, has a `fast_limit` of zero, and so has one that asks for more care (it is closed, or bounded).

use core::ptr::{self, NonNull};

use super::growth::Growth;
use super::hand::Held;
use super::segment::Segment;

/// So much is copied at most, so that what is in hand has more room.
const MOST_MOVED_BYTES: usize = 1024;

/// Envelopes in order, in one or more segments.
///
/// In this order, so that a sender reads the place and its limit at once.
#[repr(C)]
pub(crate) struct CopyQueue {
    /// Where the next envelope goes.
    place: NonNull<u8>,
    /// Up to where a send may write without a second look: `limit`, or zero. Not zero only while something waits.
    fast_limit: usize,
    /// Where the last segment ends.
    limit: usize,
    /// Where the oldest envelope lies, in the first segment.
    head: NonNull<u8>,
    first: NonNull<Segment>,
    last: NonNull<Segment>,
    /// Bytes of all segments but the last, and but for those that were put back: what is put back again and again must not make
    /// the next segment larger each time.
    full_bytes: usize,
    /// Whether every send takes the slow path.
    careful: bool,
    /// Whether something in it was put there for an actor that was not found attached: `hand/checks.rs`.
    is_unchecked: bool,
}

// SAFETY: the segments belong to the queue, and envelopes carry messages that may change cores.
unsafe impl Send for CopyQueue {}

/// What a gulp takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gulp {
    /// The chain's first segment.
    pub first: NonNull<Segment>,
    /// Where its oldest envelope lies.
    pub head: NonNull<u8>,
}

impl CopyQueue {
    /// How many bytes behind its beginning the place lies, and behind that its limit.
    #[cfg(target_os = "none")]
    pub(super) const PLACE_AT: usize = {
        use core::mem::offset_of;

        assert!(offset_of!(Self, fast_limit) == offset_of!(Self, place) + 8, "loaded as a pair");
        offset_of!(Self, place)
    };

    /// An empty queue that begins with `segment`.
    pub(crate) fn new(segment: NonNull<Segment>, careful: bool) -> Self {
        let limit = Segment::limit(segment).as_ptr() as usize;
        let place = Segment::begin(segment);
        Self {
            place,
            fast_limit: 0,
            limit,
            head: place,
            first: segment,
            last: segment,
            full_bytes: 0,
            careful,
            is_unchecked: false,
        }
    }

    /// Room for `bytes` at the end, unless there is none without a second look. The caller must write an
    /// envelope of that size there.
    #[inline(always)]
    pub(crate) fn reserve_plain(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if self.careful {
            return None;
        }
        self.reserve(bytes)
    }

    /// As [`Self::reserve_plain`], for a caller who has looked whether the queue is open and within bounds.
    #[inline(always)]
    pub(crate) fn reserve(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if !self.has_room(bytes) {
            return None;
        }
        let place = self.place;
        // SAFETY: within the segment, by the check above.
        self.place = unsafe { place.add(bytes) };
        Some(place)
    }

    /// Whether the last segment has room for `bytes`.
    pub(crate) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.limit - self.place.as_ptr() as usize
    }

    /// What comes, or has come, may be for an actor that is not attached.
    #[inline(always)]
    pub(crate) fn note_unchecked(&mut self) {
        self.is_unchecked = true;
    }

    /// Whether that was said of something in it.
    #[inline(always)]
    pub(super) fn is_unchecked(&self) -> bool {
        self.is_unchecked
    }

    /// Whether every send takes the slow path.
    #[inline(always)]
    pub(super) fn is_careful(&self) -> bool {
        self.careful
    }

    /// From now on every send takes the slow path, or no longer does, as soon as something waits.
    pub(super) fn set_careful(&mut self, careful: bool) {
        self.careful = careful;
        self.admit_none();
    }

    /// Whether something may be written without a second look.
    pub(crate) fn admits(&self) -> bool {
        self.fast_limit != 0
    }

    /// Nothing waits any more: of the next message somebody must be told.
    #[inline(always)]
    pub(super) fn admit_none(&mut self) {
        self.fast_limit = 0;
    }

    /// Something waits, and whoever must know has been told, or will be before the lock is given back: more needs no second look, unless every
    /// send does.
    #[inline(always)]
    pub(crate) fn admit(&mut self) {
        self.fast_limit = if self.careful { 0 } else { self.limit };
    }

    /// Bytes that a segment must have to follow the last one, for an envelope of `bytes`.
    pub(crate) fn next_capacity_bytes(&self, bytes: usize) -> usize {
        let capacity_bytes = self.capacity_bytes();
        Growth::limited(2 * capacity_bytes, capacity_bytes).max(bytes)
    }

    /// Links a segment at the end.
    pub(crate) fn extend(&mut self, segment: NonNull<Segment>) {
        self.seal();
        // SAFETY: the queue's segments are alive and its own.
        unsafe {
            let last = self.last.as_mut();
            last.next = segment.as_ptr();
            self.full_bytes += last.capacity_bytes();
        }
        self.last = segment;
        self.place = Segment::begin(segment);
        self.limit = Segment::limit(segment).as_ptr() as usize;
        if self.fast_limit != 0 {
            self.fast_limit = self.limit;
        }
    }

    /// Links a chain at the end that is no longer written to. Each of its segments has noted where its mail begins.
    ///
    /// # Safety
    /// The chain is the caller's, who gives it up, and nothing in it was delivered.
    pub(super) unsafe fn append(&mut self, first: NonNull<Segment>) {
        let mut next = Some(first);
        while let Some(segment) = next {
            // SAFETY: by contract.
            let (following, used) = unsafe { (segment.as_ref().next, segment.as_ref().used_bytes()) };
            self.extend(segment);
            // SAFETY: within the segment.
            self.place = unsafe { self.place.add(used) };
            next = NonNull::new(following);
        }
    }

    /// Takes everything, and goes on with `spare`, which is empty.
    pub(crate) fn gulp(&mut self, spare: NonNull<Segment>) -> Gulp {
        self.seal();
        let gulp = Gulp { first: self.first, head: self.head };
        *self = Self::new(spare, self.careful);
        gulp
    }

    /// As [`Self::gulp`], of a queue that is not careful.
    #[inline(always)]
    pub(super) fn gulp_plain(&mut self, spare: NonNull<Segment>) -> Gulp {
        debug_assert!(!self.careful, "a careful queue was taken for a plain one");
        self.seal();
        let gulp = Gulp { first: self.first, head: self.head };
        *self = Self::new(spare, false);
        gulp
    }

    /// Takes everything, and goes on with `spare`, if no send needs more care.
    /// Of the two segments the larger one goes into the hand: there is where mail of the same core comes.
    #[inline(always)]
    pub(super) fn take_plain(&mut self, spare: impl FnOnce() -> Option<NonNull<Segment>>) -> Option<Held> {
        if self.careful {
            return None;
        }
        let spare = spare()?;
        if self.first == self.last {
            // SAFETY: the caller's, and alive.
            let room = unsafe { spare.as_ref() }.capacity_bytes();
            // A suspended behaviour may still read an envelope in front of what was put back here.
            // SAFETY: the queue's segment is alive.
            let is_own = unsafe { self.first.as_ref() }.is_read_by_one();
            if room > self.capacity_of_only() && self.bytes_of_only() <= MOST_MOVED_BYTES && is_own {
                return Some(self.move_to(spare));
            }
        }
        let held = Held { first: self.first, begin: self.head, last: self.last, end: self.place };
        *self = Self::new(spare, false);
        Some(held)
    }

    /// Moves everything to `place`, where there is `room` for so many bytes, if no send needs more care, and it lies in one segment that nobody else reads. Where it ends
    /// there.
    pub(super) fn pour(&mut self, place: NonNull<u8>, room: usize) -> Option<NonNull<u8>> {
        // SAFETY: the queue's segment is alive.
        let is_own = unsafe { self.first.as_ref() }.is_read_by_one();
        if self.careful || self.first != self.last || !is_own || self.bytes_of_only() > room {
            return None;
        }
        let bytes = self.bytes_of_only();
        // SAFETY: by contract there is room. Envelopes may be moved, because whoever has them has their messages.
        let end = unsafe {
            place.copy_from_nonoverlapping(self.head, bytes);
            place.add(bytes)
        };
        *self = Self::new(self.first, false);
        Some(end)
    }

    /// Moves everything to `spare`, which is empty and larger. It lies in one segment.
    #[cold]
    #[inline(never)]
    fn move_to(&mut self, spare: NonNull<Segment>) -> Held {
        let begin = Segment::begin(spare);
        // SAFETY: within the queue's only segment, and the spare is larger. Envelopes may be moved, because whoever has them has
        // their messages.
        let end = unsafe {
            let bytes = self.bytes_of_only();
            begin.copy_from_nonoverlapping(self.head, bytes);
            begin.add(bytes)
        };
        *self = Self::new(self.first, false);
        Held { first: spare, begin, last: spare, end }
    }

    /// Bytes of memory in a queue of one segment.
    #[inline(always)]
    fn capacity_of_only(&self) -> usize {
        self.limit - Segment::begin(self.first).as_ptr() as usize
    }

    /// Bytes of envelopes in a queue of one segment.
    #[inline(always)]
    fn bytes_of_only(&self) -> usize {
        self.place.as_ptr() as usize - self.head.as_ptr() as usize
    }

    /// The first segment may get others in front of it. If something was taken out at its front, it notes where what is left begins: to move
    /// that would take as long as it is, under the lock, and a suspended behaviour may still read an envelope in front of what was put back.
    pub(super) fn settle_front(&mut self) {
        // SAFETY: the queue's segment is alive, and its mail the queue's.
        unsafe { Segment::set_mail_begin(self.first, self.head) };
    }

    fn is_settled(&self) -> bool {
        self.head == Segment::mail_begin(self.first)
    }

    /// Puts mail in front of everything. Returns a segment that is not used any more, and empty; a suspended behaviour may still read
    /// what was in it.
    ///
    /// # Safety
    /// The mail is the caller's, who gives it up, and was not delivered; it is sealed. The front is settled.
    pub(super) unsafe fn prepend(&mut self, held: Held) -> Option<NonNull<Segment>> {
        let Held { first, begin, mut last, end } = held;
        debug_assert!(self.is_settled(), "the oldest was taken out");
        if self.is_empty() {
            let careful = self.careful;
            let emptied = core::mem::replace(self, Self::new(last, careful));
            self.place = end;
            self.first = first;
            self.head = begin;
            return Some(emptied.first);
        }
        // SAFETY: by contract the chain is the queue's from now on.
        unsafe { last.as_mut() }.next = self.first.as_ptr();
        self.first = first;
        self.head = begin;
        None
    }

    /// Puts a segment in front of everything, also of nothing: senders go on where they are.
    ///
    /// # Safety
    /// The segment is the caller's, who gives it up, sealed, and nothing in it was delivered. The front is settled.
    pub(super) unsafe fn put_in_front(&mut self, mut segment: NonNull<Segment>) {
        debug_assert!(self.is_settled(), "the front is not settled");
        // SAFETY: by contract it is the queue's from now on.
        unsafe { segment.as_mut() }.next = self.first.as_ptr();
        self.first = segment;
        self.head = Segment::begin(segment);
    }

    /// Takes everything, because the queue is not used any more.
    pub(crate) fn take_all(&mut self) -> Gulp {
        self.seal();
        Gulp { first: self.first, head: self.head }
    }

    /// Whether there is no envelope.
    pub(crate) fn is_empty(&self) -> bool {
        self.first == self.last && self.head == self.place
    }

    /// Where the oldest envelope lies, or the end if there is none.
    pub(super) fn oldest(&mut self) -> NonNull<u8> {
        self.seal();
        // A segment whose envelopes were all taken from the front is left to the next gulp.
        // SAFETY: the queue's segments are alive, and sealed.
        unsafe {
            while self.head == Segment::begin(self.first).add(self.first.as_ref().used_bytes()) {
                let Some(next) = NonNull::new(self.first.as_ref().next) else { break };
                let emptied = ptr::replace(&mut self.first, next);
                self.full_bytes = self.full_bytes.saturating_sub(emptied.as_ref().capacity_bytes());
                if emptied.as_ref().release() {
                    Segment::free(emptied);
                }
                self.head = Segment::enter(next);
            }
        }
        self.head
    }

    /// The oldest envelope, of that many bytes, was taken out.
    pub(super) fn skip_oldest(&mut self, bytes: usize) {
        // SAFETY: within the segment, because an envelope of that size lay there.
        self.head = unsafe { self.head.add(bytes) };
        // SAFETY: the queue's segment is alive.
        if self.is_empty() && unsafe { self.last.as_ref() }.is_read_by_one() {
            // Empty: begin again at the front, or a bounded queue would wander through memory for ever.
            self.place = Segment::begin(self.last);
            self.head = self.place;
        }
    }

    /// Bytes of memory in the queue, but for what was put back.
    pub(crate) fn capacity_bytes(&self) -> usize {
        // SAFETY: the queue's segments are alive.
        self.full_bytes + unsafe { self.last.as_ref() }.capacity_bytes()
    }

    /// Writes down how far the last segment is in use.
    fn seal(&mut self) {
        // SAFETY: the queue's segments are alive and its own.
        unsafe { self.last.as_mut() }.set_end(self.place);
    }
}

#[cfg(test)]
mod tests {
    use super::{CopyQueue, Held, Segment};
    use crate::actor::mail::segment;
    use core::ptr::NonNull;

    const CAPACITY_BYTES: usize = 64;

    /// A queue of sixteen bytes that were put back, behind eight that a suspended behaviour reads; and those eight.
    fn put_back() -> (CopyQueue, NonNull<Segment>, NonNull<u64>) {
        let spare = Segment::new(CAPACITY_BYTES).expect("memory");
        let last = Segment::new(CAPACITY_BYTES).expect("memory");
        let begin = Segment::begin(last);
        // SAFETY: just made, and longer than that.
        let (head, end) = unsafe {
            for (index, word) in [7_u64, 8, 9].into_iter().enumerate() {
                begin.cast::<u64>().add(index).write(word);
            }
            last.as_ref().share();
            (begin.add(8), begin.add(24))
        };
        let mut queue = CopyQueue::new(spare, false);
        queue.settle_front();
        let mut held = Held { first: last, begin: head, last, end };
        held.seal();
        // SAFETY: the mail is ours, and sealed; the front is settled.
        let emptied = unsafe { queue.prepend(held) };
        assert_eq!(emptied, Some(spare));
        // SAFETY: empty, and nobody else's.
        unsafe { Segment::free(spare) };
        (queue, last, begin.cast())
    }

    #[test]
    fn what_a_suspended_behaviour_reads_stays_where_it_is_when_mail_comes_in_front() {
        let (mut queue, shared, read) = put_back();
        let mut front = Segment::new(8).expect("memory");
        // SAFETY: just made; the mail is ours, and sealed; the front is settled.
        unsafe {
            front.as_mut().set_end(Segment::begin(front).add(8));
            queue.settle_front();
            queue.put_in_front(front);
            assert_eq!(read.read(), 7, "what is read");
            let gulp = queue.take_all();
            assert_eq!((gulp.first, gulp.head), (front, Segment::begin(front)));
            assert_eq!(segment::chain_used_bytes(gulp.first, gulp.head), 24);
            let head = Segment::enter(shared);
            assert_eq!((head.cast::<u64>().read(), head.cast::<u64>().add(1).read()), (8, 9));
            assert_eq!(Segment::enter(shared), Segment::begin(shared), "it was entered");
            assert!(!shared.as_ref().release());
            segment::free_chain(front);
        }
    }

    #[test]
    fn what_a_suspended_behaviour_reads_is_not_written_over_when_all_behind_it_was_forgotten() {
        let (mut queue, shared, read) = put_back();
        let room = queue.oldest();
        assert_eq!(room, behind(read));
        queue.skip_oldest(16);
        assert!(queue.is_empty());
        let place = queue.reserve_plain(8).expect("room");
        // SAFETY: there is room; the read word is alive.
        unsafe {
            place.cast::<u64>().write(10);
            assert_eq!(read.read(), 7, "what is read");
            // It is left to the one who reads it.
            let mut other = Segment::new(8).expect("memory");
            other.as_mut().set_end(Segment::begin(other));
            queue.extend(other);
            assert_eq!(queue.oldest(), place);
            queue.skip_oldest(8);
            assert_eq!(queue.oldest(), Segment::begin(other));
            assert!(shared.as_ref().is_read_by_one());
            assert_eq!(read.read(), 7, "what is read");
            Segment::free(shared);
            Segment::free(queue.take_all().first);
        }
    }

    fn behind(word: NonNull<u64>) -> NonNull<u8> {
        // SAFETY: another follows it.
        unsafe { word.add(1) }.cast()
    }
}
