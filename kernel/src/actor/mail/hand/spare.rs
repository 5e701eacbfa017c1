//! The empty segment that a mailbox keeps for the next time it is gulped or taken in hand. It is the worker's that has the mailbox in hand, on its core
//! with preemption disabled; while none has, it is whoever's that has the mailbox's lock.

use core::ptr::{self, NonNull};

use super::Hand;
use crate::actor::mail::segment::Segment;
use crate::arch::atomic::Ordering;

impl Hand {
    /// Takes the empty segment that is kept for the next time.
    #[inline(always)]
    pub(crate) fn take_spare(&self) -> Option<NonNull<Segment>> {
        let spare = NonNull::new(self.spare.load(Ordering::Relaxed))?;
        self.spare.store(ptr::null_mut(), Ordering::Relaxed);
        Some(spare)
    }

    /// Takes it if it has room for `bytes`.
    pub(crate) fn take_spare_of(&self, bytes: usize) -> Option<NonNull<Segment>> {
        let spare = self.take_spare()?;
        // SAFETY: nobody else has it.
        if unsafe { spare.as_ref() }.capacity_bytes() >= bytes {
            return Some(spare);
        }
        self.spare.store(spare.as_ptr(), Ordering::Relaxed);
        None
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
    pub(in crate::actor::mail) unsafe fn keep_larger(&self, segment: NonNull<Segment>) {
        // SAFETY: by contract; the other one is empty, and nobody else has it.
        unsafe {
            if let Some(smaller) = self.exchange_for_larger(segment) {
                Segment::free(smaller);
            }
        }
    }

    /// As [`Self::keep_larger`], but the other one is returned.
    ///
    /// # Safety
    /// As there.
    pub(in crate::actor) unsafe fn exchange_for_larger(
        &self,
        segment: NonNull<Segment>,
    ) -> Option<NonNull<Segment>> {
        let Some(kept) = self.take_spare() else {
            self.keep_spare(segment);
            return None;
        };
        // SAFETY: both are empty, and nobody else has them.
        let is_larger = unsafe { segment.as_ref().capacity_bytes() > kept.as_ref().capacity_bytes() };
        let (larger, smaller) = if is_larger { (segment, kept) } else { (kept, segment) };
        self.keep_spare(larger);
        Some(smaller)
    }
}
