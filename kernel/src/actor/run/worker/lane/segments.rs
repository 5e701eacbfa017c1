//! The memory of a worker's lane: two segments in which it lies by turns, and a reserve, from which mail that is brought back to its mailboxes has room where
//! their own segments have none.
//!
//! All of it is made before the lane is opened, because what closes the lane may come when memory is used up, or in an interrupt.

use core::cell::Cell;
use core::ptr::NonNull;

use crate::actor::mail::Segment;
use crate::actor::mail::envelope::{ALIGN, LARGEST_ENVELOPE_BYTES};
use crate::actor::mail::mailbox::FIRST_SEGMENT_BYTES;
use crate::arch::atomic::{AtomicPtr, Ordering};

/// Bytes of each of the two, and of all that waits in the lane.
pub(super) const LANE_BYTES: usize = 16 * FIRST_SEGMENT_BYTES;

/// Of one in the reserve.
pub(super) const RESERVE_BYTES: usize = 2 * FIRST_SEGMENT_BYTES;

/// A mailbox takes one of the reserve when its own segment has no room for the next envelope, and each further one when the last has none: so it has taken up so many bytes for each. (With the first: more than an own
/// segment holds. With another one: all but less than an envelope of the one before.)
const LEAST_FOR_ANOTHER_BYTES: usize = RESERVE_BYTES - (LARGEST_ENVELOPE_BYTES - ALIGN);

/// How many are in the reserve.
const RESERVE: usize = LANE_BYTES / LEAST_FOR_ANOTHER_BYTES;

const _: () = assert!(LEAST_FOR_ANOTHER_BYTES <= FIRST_SEGMENT_BYTES);

pub(super) struct Segments {
    /// Where it lies, or will.
    current: Cell<Option<NonNull<Segment>>>,
    /// Where it goes on.
    other: Cell<Option<NonNull<Segment>>>,
    /// The complement of the address where it lay when it became a batch. To the collector of what crashes leave every word is a pointer, and this leads nowhere.
    given: Cell<usize>,
    /// Where what is in the other one ends; null if senders do not append there.
    pub(super) other_end: AtomicPtr<u8>,
    reserve: [Cell<Option<NonNull<Segment>>>; RESERVE],
}

impl Segments {
    pub(super) const fn new() -> Self {
        Self {
            current: Cell::new(None),
            other: Cell::new(None),
            given: Cell::new(0),
            other_end: AtomicPtr::new(core::ptr::null_mut()),
            reserve: [const { Cell::new(None) }; RESERVE],
        }
    }

    fn all(&self) -> impl Iterator<Item = (&Cell<Option<NonNull<Segment>>>, usize)> {
        let lane = [(&self.current, LANE_BYTES), (&self.other, LANE_BYTES)];
        lane.into_iter().chain(self.reserve.iter().map(|place| (place, RESERVE_BYTES)))
    }

    pub(super) fn are_there(&self) -> bool {
        self.all().all(|(place, _)| place.get().is_some())
    }

    /// Makes those that are not there, or frees all if there is no memory for them. Whether all are there. With preemption enabled.
    pub(super) fn make(&self) -> bool {
        for (place, bytes) in self.all().filter(|(place, _)| place.get().is_none()) {
            place.set(Segment::new(bytes));
            if place.get().is_none() {
                self.free();
                return false;
            }
        }
        true
    }

    /// Where the lane lies, or will.
    pub(super) fn current(&self) -> Option<NonNull<Segment>> {
        self.current.get()
    }

    /// Where it goes on.
    pub(super) fn other(&self) -> Option<NonNull<Segment>> {
        self.other.get()
    }

    /// The one in which it lies is a batch's from now on.
    pub(super) fn give_current(&self) {
        self.given.set(self.current.take().map_or(0, |segment| !segment.addr().get()));
    }

    /// An empty one, as good as new, is the lane's again, if it was, and the lane lacks it. Whether it is.
    pub(super) fn take_back(&self, segment: NonNull<Segment>) -> bool {
        // Of one that was freed since, another may have the memory.
        // SAFETY: the caller's, who gives it up.
        let was_given = self.given.get() == !segment.addr().get()
            && unsafe { segment.as_ref() }.capacity_bytes() == LANE_BYTES;
        let takes = was_given && self.current.get().is_none();
        if takes {
            self.given.set(0);
            self.current.set(Some(segment));
        }
        takes
    }

    /// Where what is in the other one ends, if senders append there; they do not from now on.
    pub(super) fn end_elsewhere(&self) -> Option<NonNull<u8>> {
        NonNull::new(self.other_end.swap(core::ptr::null_mut(), Ordering::Relaxed))
    }

    /// It goes on in the other one. Where what is there ends.
    pub(super) fn turn_over(&self) -> Option<(NonNull<Segment>, NonNull<u8>)> {
        let end = self.end_elsewhere()?;
        self.current.swap(&self.other);
        self.current.get().map(|segment| (segment, end))
    }

    /// One of the reserve.
    pub(super) fn take_of_reserve(&self) -> Option<NonNull<Segment>> {
        let kept = self.reserve.iter().find_map(Cell::take);
        debug_assert!(kept.is_some(), "the lane had more than there is room for");
        kept.or_else(|| Segment::new(RESERVE_BYTES))
    }

    /// One of the reserve, if there is any, for something else: the lane cannot be opened before there is memory for another one.
    pub(super) fn give_of_reserve(&self) -> Option<NonNull<Segment>> {
        self.reserve.iter().find_map(Cell::take)
    }

    /// Frees all.
    pub(super) fn free(&self) {
        for segment in self.all().filter_map(|(place, _)| place.take()) {
            // SAFETY: empty, and nobody else has it.
            unsafe { Segment::free(segment) };
        }
    }
}

/// Where the room of one of the lane's ends.
pub(super) fn limit(segment: NonNull<Segment>) -> *mut u8 {
    Segment::begin(segment).as_ptr().wrapping_add(LANE_BYTES)
}
