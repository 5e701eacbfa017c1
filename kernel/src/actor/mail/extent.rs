//! How far the delivery of a batch has come, and where it ends: for itself, and for the interrupt, which may give it another end. Whose the
//! envelopes are, and who is told, is in `batch.rs`.
//!
//! The loop looks at the end afresh behind each envelope, and compares it by order: whatever the interrupt did, the loop ends at the next
//! look. Both run on one core, the interrupt between two steps of the loop, so every access is relaxed. A loop that was suspended goes on
//! on another core perhaps, with what is its own since the split.

use core::ptr::{self, NonNull};

use crate::arch::atomic::{AtomicPtr, AtomicU8, AtomicU64, Ordering};

/// In the state: no interrupt has changed it.
const WHOLE: u8 = 0;

/// The delivery loop is to stop behind an envelope. All that the batch loses is its end.
const CUT: u8 = 1;

/// The rest was handed to another batch: this one ends with the envelope at `split_at`.
const SPLIT: u8 = 2;

/// A piece of a segment that is being delivered.
pub struct Extent {
    /// The envelope that is being delivered, or comes next.
    position: AtomicPtr<u8>,
    /// Where the envelopes of the current segment end for this batch.
    end: AtomicPtr<u8>,
    /// What an interrupt has done to it: [`WHOLE`], [`CUT`] or [`SPLIT`].
    state: AtomicU8,
    /// While it is cut: its end.
    whole_end: AtomicPtr<u8>,
    split_at: AtomicPtr<u8>,
    /// Where the batch does not go on behind a run: how many more may be delivered.
    left: AtomicU64,
}

impl Extent {
    /// Nothing.
    #[expect(clippy::new_without_default, reason = "nobody makes one without saying so")]
    pub fn new() -> Self {
        let nowhere = || AtomicPtr::new(ptr::null_mut());
        Self {
            position: nowhere(),
            end: nowhere(),
            state: AtomicU8::new(WHOLE),
            whole_end: nowhere(),
            split_at: nowhere(),
            left: AtomicU64::new(0),
        }
    }

    /// The batch does not go on behind a run: so many more may be delivered.
    #[inline(always)]
    pub fn set_left(&self, left: u64) {
        self.left.store(left, Ordering::Relaxed);
    }

    /// As was [set](Self::set_left) at the end of the last run.
    #[inline(always)]
    pub fn left(&self) -> u64 {
        self.left.load(Ordering::Relaxed)
    }

    /// Goes on from `position` to `end`.
    #[inline(always)]
    pub fn set(&self, position: NonNull<u8>, end: NonNull<u8>) {
        self.go_to(position);
        self.end.store(end.as_ptr(), Ordering::Relaxed);
    }

    /// Goes on at `position`.
    #[inline(always)]
    pub fn go_to(&self, position: NonNull<u8>) {
        self.position.store(position.as_ptr(), Ordering::Relaxed);
    }

    /// The envelope that is being delivered or comes next, or the end.
    #[inline(always)]
    pub fn position(&self) -> *mut u8 {
        self.position.load(Ordering::Relaxed)
    }

    /// Where its envelopes end.
    #[inline(always)]
    pub fn end(&self) -> *mut u8 {
        self.end.load(Ordering::Relaxed)
    }

    /// Where senders write while it is neither cut nor split: they move the end.
    #[inline(always)]
    pub fn end_cell(&self) -> &AtomicPtr<u8> {
        &self.end
    }

    /// Where they write while it is cut.
    pub fn whole_end_cell(&self) -> &AtomicPtr<u8> {
        &self.whole_end
    }

    /// The envelope that is being delivered or comes next, unless all are done.
    #[inline(always)]
    pub fn current(&self) -> Option<NonNull<u8>> {
        let position = self.position();
        if self.is_done_at(position) { None } else { NonNull::new(position) }
    }

    /// As [`Self::current`], were it not cut.
    pub fn current_of_whole(&self) -> Option<NonNull<u8>> {
        let position = self.position();
        if position < self.end_of_whole() { NonNull::new(position) } else { None }
    }

    /// Where its envelopes end, were it not cut.
    pub fn end_of_whole(&self) -> *mut u8 {
        let end = if self.is_cut() { &self.whole_end } else { &self.end };
        end.load(Ordering::Relaxed)
    }

    /// Whether all are done at this position. The end is read afresh: a split or a cut changes it, and nothing else that the delivery loop
    /// knows.
    #[inline(always)]
    pub fn is_done_at(&self, position: *mut u8) -> bool {
        // Not less, rather than equal: after a split the position may be past the end.
        position >= self.end()
    }

    /// It ends there: behind the envelope that is being delivered, or comes next. What is behind that is the caller's. Nobody has cut or split it.
    pub fn end_at(&self, end: NonNull<u8>) {
        self.end.store(end.as_ptr(), Ordering::Relaxed);
    }

    /// Whether its rest was handed to another batch.
    #[inline(always)]
    pub fn is_split(&self) -> bool {
        self.state.load(Ordering::Relaxed) == SPLIT
    }

    fn is_cut(&self) -> bool {
        self.state.load(Ordering::Relaxed) == CUT
    }

    /// Whether an interrupt has split or cut it.
    #[inline(always)]
    pub fn was_changed(&self) -> bool {
        self.state.load(Ordering::Relaxed) != WHOLE
    }

    /// The delivery loop is to stop behind the envelope that is being delivered, or comes next; `behind` says where that is. Whether it was
    /// cut just now: then senders are to write at [`Self::whole_end_cell`]. For the interrupt, while it is not split.
    pub fn cut(&self, behind: impl FnOnce(NonNull<u8>) -> NonNull<u8>) -> bool {
        if self.is_cut() {
            return false;
        }
        self.whole_end.store(self.end(), Ordering::Relaxed);
        if let Some(envelope) = self.current() {
            self.end.store(behind(envelope).as_ptr(), Ordering::Relaxed);
        }
        self.state.store(CUT, Ordering::Relaxed);
        true
    }

    /// It has its end again, if it was cut. Whether it was: then senders are to write at [`Self::end_cell`].
    pub fn mend(&self) -> bool {
        let was_cut = self.is_cut();
        if was_cut {
            self.end.store(self.whole_end.load(Ordering::Relaxed), Ordering::Relaxed);
            self.state.store(WHOLE, Ordering::Relaxed);
        }
        was_cut
    }

    /// Everything after `envelope`, which is the current one, is another batch's from now on. It is not cut.
    pub fn split(&self, envelope: NonNull<u8>) {
        self.end.store(envelope.as_ptr(), Ordering::Relaxed);
        self.split_at.store(envelope.as_ptr(), Ordering::Relaxed);
        self.state.store(SPLIT, Ordering::Relaxed);
    }

    /// The envelope that it was split at; null before.
    #[inline(always)]
    pub fn split_at(&self) -> *mut u8 {
        self.split_at.load(Ordering::Relaxed)
    }

    /// After a split: the envelope that is still to be delivered, if it has not been yet.
    pub fn undelivered(&self) -> Option<NonNull<u8>> {
        let position = self.position();
        if position == self.split_at() { NonNull::new(position) } else { None }
    }
}
