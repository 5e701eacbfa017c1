//! A mailbox at rest whose mail goes into its worker's lane. What a lane is: `run/worker/lane`.
//!
//! It rests as any other, with an empty segment of its own, but its gate is open, and leads to where the lane ends. When the lane is closed so is the
//! gate, until what is left of its mail there was brought back here.

use core::ptr::NonNull;

use super::{Hand, Held};
use crate::actor::mail::mailbox::FIRST_SEGMENT_BYTES;
use crate::actor::mail::segment::Segment;
use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::sync::PreemptGuard;

impl Hand {
    /// Whether what is appended on the caller's core goes into the lane of the worker there.
    #[inline(always)]
    pub(crate) fn is_in_lane(&self, _here: &PreemptGuard) -> bool {
        self.in_lane.load(Ordering::Relaxed) && self.gate.is_open()
    }

    /// Whether it belongs to the lane of the worker that has it in hand, though the lane may be closed.
    #[inline(always)]
    pub(crate) fn is_of_lane(&self) -> bool {
        self.in_lane.load(Ordering::Relaxed)
    }

    /// Whether it rests in hand on the caller's core, with a segment as long as a first one: what may be brought back to it from the lane counts on that.
    pub(crate) fn may_enter_lane(&self, _here: &PreemptGuard) -> bool {
        // SAFETY: at rest it has a segment, which is its own.
        self.gate.is_at_rest()
            && unsafe { self.noted_segment().as_ref() }.capacity_bytes() >= FIRST_SEGMENT_BYTES
    }

    /// From now on what is appended goes into the lane, which ends where `end` says, and has room up to `limit`.
    ///
    /// # Safety
    /// It rests in hand on the caller's core. The end lives until it [rests again](Self::leave_lane), and leads into a buffer that ends at
    /// `limit` and into which only this core writes.
    pub(crate) unsafe fn enter_lane(&self, end: &AtomicPtr<u8>, limit: *mut u8) {
        self.in_lane.store(true, Ordering::Relaxed);
        // SAFETY: by contract.
        unsafe { self.gate.open(end, limit) };
    }

    /// What is appended goes where `end` says from now on, up to `limit`: the lane goes on elsewhere, or ends elsewhere.
    ///
    /// # Safety
    /// It is of the lane, which is not closed. The rest as for [`Self::enter_lane`].
    pub(crate) unsafe fn move_in_lane(&self, end: &AtomicPtr<u8>, limit: *mut u8) {
        // SAFETY: by contract.
        unsafe { self.gate.move_cursor(end) };
        self.gate.set_limit(limit);
    }

    /// It rests with its own segment again, if it is in the lane. Nothing of its mail is there, but what is being delivered.
    pub(crate) fn leave_lane(&self, here: &PreemptGuard) {
        if self.is_in_lane(here) {
            self.reopen();
        }
    }

    /// The lane is closed: what is sent goes into the queue, behind all that is in hand, until the gate is [open again](Self::reopen).
    pub(crate) fn close_lane(&self) {
        self.gate.close();
    }

    /// What is in `lane` is a batch of this mailbox's from now on: what is sorted in follows it, in the segment that it rests with.
    ///
    /// # Safety
    /// It is of the lane of the worker on the caller's core, which is closed. The lane is that worker's batch, is sealed, and was linked to nothing.
    pub(crate) unsafe fn follow_lane(&self, mut lane: NonNull<Segment>) {
        // SAFETY: as at rest it has a segment; by contract.
        let own = unsafe {
            let own = self.noted_segment();
            lane.as_mut().next = own.as_ptr();
            own
        };
        let begin = Segment::begin(own);
        self.keep(Held { first: own, begin, last: own, end: begin });
        self.follows.store(true, Ordering::Relaxed);
    }

    /// Room for an envelope of the closed lane's, behind what is here: in its own segment, or in another, which is linked to the last. And whether it is
    /// the first for a mailbox that waits for nothing yet.
    ///
    /// # Safety
    /// It is of the closed lane of the worker on the caller's core, who writes an envelope of that size there. A segment that is given is empty, and
    /// has room.
    pub(crate) unsafe fn sort_in(
        &self,
        bytes: usize,
        another: impl FnOnce() -> Option<NonNull<Segment>>,
    ) -> Option<(NonNull<u8>, bool)> {
        let mut held = self.held();
        let is_first = held.first == held.last && held.begin == held.end && !self.follows();
        let mut place = held.end;
        if place.as_ptr().wrapping_add(bytes) > Segment::limit(held.last).as_ptr() {
            let segment = another()?;
            held.seal();
            // SAFETY: in hand, and nobody appends to it while the gate is closed.
            unsafe { held.last.as_mut() }.next = segment.as_ptr();
            place = Segment::begin(segment);
            held.last = segment;
            self.keep(held);
        }
        // SAFETY: it has so much room.
        self.end.store(unsafe { place.add(bytes) }.as_ptr(), Ordering::Relaxed);
        Some((place, is_first))
    }

    /// It leaves the lane: what is appended goes behind what is here, or it rests if nothing is.
    pub(crate) fn reopen(&self) {
        self.in_lane.store(false, Ordering::Relaxed);
        let held = self.held();
        // SAFETY: the end is in the last segment, and this is never freed.
        unsafe { self.gate.move_cursor(&self.end) };
        self.gate.set_limit(Segment::limit(held.last).as_ptr());
        if held.begin == held.end && held.first == held.last && !self.follows() {
            self.gate.rest();
        } else {
            self.gate.wake();
        }
    }

    /// Bytes of the mail that waits here, if it was checked, and lies in one segment that is as long as a first one, and that nobody else reads.
    pub(crate) fn pourable_bytes(&self) -> Option<usize> {
        let held = self.held();
        // SAFETY: in hand.
        let segment = unsafe { held.first.as_ref() };
        let is_own = held.first == held.last && segment.is_read_by_one();
        let may = is_own && segment.capacity_bytes() >= FIRST_SEGMENT_BYTES && self.is_checked();
        may.then(|| held.end.as_ptr().addr() - held.begin.as_ptr().addr())
    }

    /// Mail that waits here, and [may be poured](Self::pourable_bytes), is moved to `place`; then it rests. Returns where it ends there, and whether the
    /// mailbox must be put into the worker's list of what may be at rest.
    ///
    /// # Safety
    /// The caller is the worker that has it in hand, has taken it from the run list, and has room for it at `place`.
    pub(crate) unsafe fn pour(&self, place: NonNull<u8>) -> (NonNull<u8>, bool) {
        let held = self.held();
        let bytes = held.end.as_ptr().addr() - held.begin.as_ptr().addr();
        if !self.is_sole() {
            self.note_sole(held.first);
        }
        // SAFETY: by contract. What is here lies in one segment, and nobody else reads that. An envelope may be moved, because whoever has it has its message.
        unsafe {
            place.copy_from_nonoverlapping(held.begin, bytes);
            (place.add(bytes), self.rest())
        }
    }
}
