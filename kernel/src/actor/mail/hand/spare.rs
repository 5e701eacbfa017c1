//! The empty segment that a mailbox keeps for the next time it is gulped or taken in hand. Whoever has the mailbox's lock may
//! take it.

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
    pub(in crate::actor) unsafe fn keep_larger(&self, segment: NonNull<Segment>) {
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
}
