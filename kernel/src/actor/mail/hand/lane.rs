//! A mailbox at rest whose mail goes into its worker's lane. What a lane is: `run/worker/lane.rs`.
//!
//! It rests as any other, with an empty segment of its own, but its gate is open, and leads to the end of the lane. Its worker has it at rest
//! again before it is put down, listed, or part of another batch.

use core::ptr::NonNull;

use super::{Hand, Held};
use crate::actor::mail::segment::Segment;
use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::sync::PreemptGuard;

impl Hand {
    /// Whether what is appended on the caller's core goes into the lane of the worker there.
    #[inline(always)]
    pub(crate) fn is_in_lane(&self, _here: &PreemptGuard) -> bool {
        self.in_lane.load(Ordering::Relaxed) && self.gate.is_open()
    }

    /// Whether it rests in hand on the caller's core, and its own segment has room for so many bytes.
    pub(crate) fn may_enter_lane(&self, bytes: usize, _here: &PreemptGuard) -> bool {
        // SAFETY: at rest it has a segment, which is its own.
        self.gate.is_at_rest() && unsafe { self.noted_segment().as_ref() }.capacity_bytes() >= bytes
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

    /// It rests with its own segment again, if it is in the lane. The caller has seen to it that nothing of its mail is there, or brings that
    /// into its hand before anything else is appended.
    pub(crate) fn leave_lane(&self, here: &PreemptGuard) {
        if self.is_in_lane(here) {
            self.in_lane.store(false, Ordering::Relaxed);
            // SAFETY: it has come to rest with that segment, and the end in it; this is never freed.
            unsafe {
                self.gate.move_cursor(&self.end);
                self.gate.set_limit(Segment::limit(self.noted_segment()).as_ptr());
            }
            self.gate.rest();
        }
    }

    /// What is in `lane` is a batch of this mailbox's from now on: what is appended follows it, in the segment that it rests with.
    ///
    /// # Safety
    /// It rests in hand on the caller's core. The lane is that worker's batch, is sealed, and was linked to nothing.
    pub(crate) unsafe fn follow_lane(&self, mut lane: NonNull<Segment>) {
        // SAFETY: at rest it has a segment; by contract.
        let own = unsafe {
            let own = self.noted_segment();
            lane.as_mut().next = own.as_ptr();
            own
        };
        let begin = Segment::begin(own);
        self.keep(Held { first: own, begin, last: own, end: begin });
        self.follows.store(true, Ordering::Relaxed);
        // The cursor and the limit are those that it rests with.
        self.gate.wake();
    }

    /// Plain mail that waits here, and was checked, is moved to `place`, if that has `room` for it, and its own segment for as much; then it rests.
    /// Returns where it ends there, and whether the mailbox must be put into the worker's list of what may be at rest.
    ///
    /// # Safety
    /// The caller is the worker that has it in hand, has taken it from the run list, and has `room` bytes at `place`.
    pub(crate) unsafe fn pour(&self, place: NonNull<u8>, room: usize) -> Option<(NonNull<u8>, bool)> {
        let held = self.held();
        let begin = held.begin;
        let bytes = held.end.as_ptr().addr() - begin.as_ptr().addr();
        // SAFETY: by contract it is in hand.
        if bytes > room || unsafe { held.first.as_ref() }.capacity_bytes() < room {
            return None;
        }
        // SAFETY: by contract. It is plain: what is here lies in one segment. An envelope may be moved, because whoever has it has its message.
        unsafe {
            place.copy_from_nonoverlapping(begin, bytes);
            Some((place.add(bytes), self.rest()))
        }
    }
}
