//! Mail in hand as it lies in segments: one, or several that are linked.
//!
//! What is *sole* lies in one segment, from its beginning on: then where it begins and which segment is its last need not be looked up. It is
//! *plain* if that segment has not grown: then a batch may grow to its end.

use core::ptr::{self, NonNull};

use super::{Hand, MOST_GROWTH_BYTES};
use crate::actor::mail::segment::Segment;
use crate::arch::atomic::Ordering;

/// In the hand's nature: what is kept here, or was until it became a batch, lies in one segment, from its beginning on.
pub(super) const SOLE: u8 = 1;

/// And that segment has grown: it is longer than a batch may grow.
pub(super) const GROWN: u8 = 4;

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
    pub(in crate::actor::mail) fn seal(&mut self) {
        // SAFETY: the mail is the caller's.
        unsafe { self.last.as_mut() }.set_end(self.end);
    }
}

impl Hand {
    /// # Safety
    /// One was noted, and is what is in hand's.
    #[inline(always)]
    pub(super) unsafe fn noted_segment(&self) -> NonNull<Segment> {
        // SAFETY: by contract.
        unsafe { NonNull::new_unchecked(self.segment.load(Ordering::Relaxed)) }
    }

    /// The mail that is kept here.
    pub(super) fn held(&self) -> Held {
        // SAFETY: only asked while there is some, if only an empty segment.
        unsafe {
            let (first, end) =
                (self.noted_segment(), NonNull::new_unchecked(self.end.load(Ordering::Relaxed)));
            if self.is_sole() {
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

    /// Keeps mail here that is not sole.
    pub(super) fn keep(&self, held: Held) {
        self.set_several();
        self.segment.store(held.first.as_ptr(), Ordering::Relaxed);
        self.begin.store(held.begin.as_ptr(), Ordering::Relaxed);
        self.last.store(held.last.as_ptr(), Ordering::Relaxed);
        self.end.store(held.end.as_ptr(), Ordering::Relaxed);
    }

    /// Whether what is kept here, or was until it became a batch that nothing follows, is one segment, used from its beginning on.
    #[inline(always)]
    pub(crate) fn is_sole(&self) -> bool {
        self.nature() & SOLE != 0
    }

    /// Of what is sole: whether its segment has grown.
    #[inline(always)]
    pub(crate) fn has_grown(&self) -> bool {
        self.nature() & GROWN != 0
    }

    #[inline(always)]
    pub(super) fn nature(&self) -> u8 {
        self.nature.load(Ordering::Relaxed)
    }

    /// It is not sole from now on.
    #[inline(always)]
    pub(super) fn set_several(&self) {
        self.nature.store(self.nature() & !(SOLE | GROWN), Ordering::Relaxed);
    }

    /// This segment is all that there is, and empty, or used from its beginning on.
    #[inline(always)]
    pub(crate) fn note_sole(&self, segment: NonNull<Segment>) {
        self.segment.store(segment.as_ptr(), Ordering::Relaxed);
        // Or a collection would take segments for alive that were freed.
        self.begin.store(ptr::null_mut(), Ordering::Relaxed);
        self.last.store(ptr::null_mut(), Ordering::Relaxed);
        self.gate.set_limit(Segment::limit(segment).as_ptr());
        // SAFETY: the segment is what is in hand's.
        let has_grown = unsafe { segment.as_ref() }.capacity_bytes() > MOST_GROWTH_BYTES;
        let kept = self.nature() & !(SOLE | GROWN);
        self.nature.store(kept | if has_grown { SOLE | GROWN } else { SOLE }, Ordering::Relaxed);
    }

    /// All of a batch was delivered that was sole, in a segment that has grown: to the end of that goes what comes next.
    #[inline(always)]
    pub(crate) fn end_growth(&self, segment: NonNull<Segment>) {
        self.gate.set_limit(Segment::limit(segment).as_ptr());
    }
}
