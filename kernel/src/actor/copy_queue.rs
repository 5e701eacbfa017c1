//! The copy queue: where senders append envelopes, and which is taken whole.
//!
//! Append-only, then drain-only: the "gulp discipline" of C∀. Envelopes go to the end of the last segment.
//! When that is full the sender leaves the lock, allocates one as large as all before it together, and
//! links it: nothing is copied, and the lock is never held over an allocation. The worker gives its empty
//! segment in exchange for the whole chain, and keeps the largest one for the next exchange; so in steady
//! state nothing is allocated at all.

use core::ptr::NonNull;

use super::segment::Segment;

/// Envelopes in order, in one or more segments.
pub(super) struct CopyQueue {
    /// Where the next envelope goes, and where the last segment ends.
    place: NonNull<u8>,
    limit: NonNull<u8>,
    messages: u32,
    first: NonNull<Segment>,
    last: NonNull<Segment>,
    /// Bytes of all segments but the last.
    full_bytes: usize,
}

// SAFETY: the segments belong to the queue, and envelopes carry messages that may change cores.
unsafe impl Send for CopyQueue {}

/// What a gulp takes.
#[derive(Clone, Copy)]
pub(super) struct Gulp {
    /// The chain's first segment.
    pub first: NonNull<Segment>,
    /// How many envelopes are in the chain.
    pub messages: u32,
}

impl CopyQueue {
    /// An empty queue that begins with `segment`.
    pub(super) fn new(segment: NonNull<Segment>) -> Self {
        Self {
            place: Segment::begin(segment),
            limit: Segment::limit(segment),
            messages: 0,
            first: segment,
            last: segment,
            full_bytes: 0,
        }
    }

    /// Room for `bytes` at the end, unless the last segment is too full. The caller must write an envelope
    /// of that size there.
    #[inline(always)]
    pub(super) fn reserve(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        if !self.has_room(bytes) {
            return None;
        }
        let place = self.place;
        // SAFETY: within the segment, by the check above.
        self.place = unsafe { place.add(bytes) };
        self.messages += 1;
        Some(place)
    }

    /// Whether the last segment has room for `bytes`.
    #[inline(always)]
    pub(super) fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.limit.as_ptr() as usize - self.place.as_ptr() as usize
    }

    /// Bytes that a segment must have to follow the last one, for an envelope of `bytes`.
    pub(super) fn next_capacity_bytes(&self, bytes: usize) -> usize {
        // SAFETY: the queue's segments are alive.
        let last = unsafe { self.last.as_ref() }.capacity_bytes();
        (self.full_bytes + last).max(bytes)
    }

    /// Links a segment at the end.
    pub(super) fn extend(&mut self, segment: NonNull<Segment>) {
        self.seal();
        // SAFETY: the queue's segments are alive and its own.
        unsafe {
            let last = self.last.as_mut();
            last.next = segment.as_ptr();
            self.full_bytes += last.capacity_bytes();
        }
        self.last = segment;
        self.place = Segment::begin(segment);
        self.limit = Segment::limit(segment);
    }

    /// Takes everything, and goes on with `spare`, which is empty.
    pub(super) fn gulp(&mut self, spare: NonNull<Segment>) -> Gulp {
        self.seal();
        let gulp = Gulp { first: self.first, messages: self.messages };
        *self = Self::new(spare);
        gulp
    }

    /// Takes the segments, for the queue is not used any more.
    pub(super) fn take_segments(&mut self) -> NonNull<Segment> {
        self.seal();
        self.first
    }

    /// How many envelopes there are.
    #[inline(always)]
    pub(super) fn messages(&self) -> u32 {
        self.messages
    }

    /// Writes down how far the last segment is in use.
    fn seal(&mut self) {
        // SAFETY: the queue's segments are alive and its own.
        unsafe { self.last.as_mut() }.used_bytes =
            self.place.as_ptr() as usize - Segment::begin(self.last).as_ptr() as usize;
    }
}
