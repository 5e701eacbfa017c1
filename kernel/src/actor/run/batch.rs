//! A batch: what one gulp took, or was given to the worker directly, and how far its delivery has come.
//!
//! It lies in memory, not in registers, because the timer interrupt reads it: when a behaviour runs past its
//! slice, the interrupt splits the batch (see `detach`), and when the turn is to end, it *cuts* the batch: gives it an earlier end, until
//! the delivery loop has come there. The delivery loop stores its position before each
//! delivery and reads its end afresh after it; that is all that an unpreempted delivery pays.

use alloc::boxed::Box;
use core::ptr::{self, NonNull};
use core::sync::atomic::compiler_fence;

use super::tally::Tally;
use crate::actor::mail::mailbox::Taken;
use crate::actor::mail::{Envelope, Extent, Gulp, Mailbox, Segment};
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU32, Ordering};
use crate::mem;
use crate::sync::PreemptGuard;

/// One batch. Written by the activation that delivers it and by the interrupt that splits it, on one core,
/// one at a time: every access is relaxed.
pub(super) struct Batch {
    /// What of the current segment is its own.
    extent: Extent,
    /// The current segment; null when there is no batch.
    segment: AtomicPtr<Segment>,
    /// Where it came from.
    mailbox: AtomicPtr<Mailbox>,
    /// Each envelope's actor must be looked at.
    is_unchecked: AtomicBool,
    /// It is the lane: it came from no one mailbox.
    is_lane: AtomicBool,
    /// The delivery loop is at work: the interrupt may split the batch.
    armed: AtomicBool,
    /// After a split: the activation holds the actor of that envelope. If not, the envelope is a dead letter, or has ended
    /// its actor.
    holds_actor: AtomicBool,
    /// After a split: the actor is attached again. Another activation may run it, or hold it.
    has_given_back: AtomicBool,
    /// After a split: it delivers what was in the side queue.
    drains: AtomicBool,
    /// How many messages it has left of that.
    undrained: AtomicU32,
    /// What is handled of that is not whole any more.
    has_begun: AtomicBool,
    /// The last envelope whose behaviour ended its actor; since the split, if there was one.
    ended_at: AtomicPtr<u8>,
    /// What its delivery has counted. Here, because it outlives a crash.
    pub tally: Tally,
}

impl Batch {
    /// No batch yet.
    pub(super) fn new() -> Option<NonNull<Self>> {
        let batch = Self {
            extent: Extent::new(),
            segment: AtomicPtr::new(ptr::null_mut()),
            mailbox: AtomicPtr::new(ptr::null_mut()),
            is_unchecked: AtomicBool::new(true),
            is_lane: AtomicBool::new(false),
            armed: AtomicBool::new(false),
            holds_actor: AtomicBool::new(false),
            has_given_back: AtomicBool::new(false),
            drains: AtomicBool::new(false),
            undrained: AtomicU32::new(0),
            has_begun: AtomicBool::new(false),
            ended_at: AtomicPtr::new(ptr::null_mut()),
            tally: Tally::new(),
        };
        Some(NonNull::from(Box::leak(mem::kernel_box(batch).ok()?)))
    }

    /// # Safety
    /// Nobody uses the batch any more.
    pub(super) unsafe fn free(this: NonNull<Self>) {
        // SAFETY: made in `new`.
        drop(unsafe { Box::from_raw(this.as_ptr()) });
    }

    /// Begins with what was taken from `mailbox`, or goes on with more from there.
    #[inline(always)]
    pub(super) fn begin(&self, mailbox: &'static Mailbox, taken: &Taken, here: &PreemptGuard) {
        self.mailbox.store(ptr::from_ref(mailbox).cast_mut(), Ordering::Relaxed);
        let first = taken.gulp.first;
        // SAFETY: the chain was gulped, so it is ours.
        self.set_place(first, taken.gulp.head, unsafe { Segment::used_end(first) });
        self.is_unchecked.store(taken.is_unchecked, Ordering::Relaxed);
        self.open_gate(first, here);
    }

    /// Begins with what waits in hand of `mailbox` for its turn, or goes on with what has followed it there. It may grow by more if
    /// no others wait. Returns its first envelope, if there is one: it may be in the queue that the mail is for which the mailbox was
    /// listed.
    ///
    /// # Safety
    /// The caller is the mailbox's worker, on its core with preemption off, and what is in hand is no batch's.
    #[inline(always)]
    pub(super) unsafe fn begin_held(
        &self,
        mailbox: &'static Mailbox,
        is_alone: bool,
    ) -> Option<NonNull<Envelope>> {
        self.mailbox.store(ptr::from_ref(mailbox).cast_mut(), Ordering::Relaxed);
        // SAFETY: by contract; a batch lives until its mailbox is put down or another takes over, and the gate goes with it.
        let (segment, position, end, is_unchecked) = unsafe {
            if mailbox.hand.is_sole_and_checked() {
                let (segment, end) = mailbox.hand.become_sole_batch(self.extent.end_cell());
                (segment, Segment::begin(segment), end, false)
            } else {
                mailbox.hand.become_batch(self.extent.end_cell(), is_alone)
            }
        };
        self.extent.go_to(position);
        self.segment.store(segment.as_ptr(), Ordering::Relaxed);
        self.is_unchecked.store(is_unchecked, Ordering::Relaxed);
        (position < end).then_some(position.cast())
    }

    /// Whether each envelope's actor must be looked at: `mail/hand/checks.rs`.
    #[inline(always)]
    pub(super) fn is_unchecked(&self) -> bool {
        self.is_unchecked.load(Ordering::Relaxed)
    }

    /// From now on each envelope's actor must be looked at.
    #[inline(always)]
    pub(super) fn note_unchecked(&self) {
        self.is_unchecked.store(true, Ordering::Relaxed);
    }

    /// An actor of its mailbox has ended, as its word says by now: there may be mail for that one in the batch, and in what follows it.
    /// After a split the hand is another activation's, and the split has noted it.
    #[inline(always)]
    pub(super) fn note_gone(&self) {
        self.note_unchecked();
        // Whoever settles the lane in an interrupt finds that noted, or has done so before this look.
        compiler_fence(Ordering::SeqCst);
        if !self.is_lane() && self.mailbox().hand.follows() {
            let here = PreemptGuard::new();
            if !self.is_split() {
                self.mailbox().hand.note_unchecked(&here);
            }
        }
    }

    /// Opens the mailbox's gate: senders on this core write behind the batch, whose current segment is its first. Their
    /// envelopes are part of the batch, or follow it.
    #[inline(always)]
    fn open_gate(&self, first: NonNull<Segment>, here: &PreemptGuard) {
        // SAFETY: the caller is the mailbox's worker; a batch lives until its mailbox is put down or another takes over, and the
        // gate goes with it. The chain is the batch's.
        unsafe {
            if first.as_ref().next.is_null() {
                self.mailbox().hand.open_for_batch(self.extent.end_cell(), first, here);
            } else {
                self.mailbox().hand.open_behind_chain(Segment::last_of(first), here);
            }
        }
    }

    /// Senders that wrote behind another batch of this mailbox's write behind this one.
    pub(super) fn take_gate(&self) {
        // SAFETY: as in `open_gate`; in the same segment.
        unsafe { self.mailbox().hand.move_to_batch(self.extent.end_cell()) };
    }

    /// Writes down how far its last segment is in use: senders on its core may have written more since it was taken out. Its
    /// mailbox's gate is closed.
    pub(super) fn note_use(&self) {
        if self.mailbox().hand.seal_following() {
            return;
        }
        if let Some(mut segment) = self.segment() {
            // SAFETY: the batch's own segment, alive as long as it is here. If it is not the last, nothing was added to it.
            unsafe { segment.as_mut() }.set_end(self.end());
        }
    }

    /// How many bytes of its segment were delivered, or all of it if it began there.
    #[inline(always)]
    pub(super) fn delivered_bytes(&self, segment: NonNull<Segment>) -> usize {
        self.position().as_ptr() as usize - Segment::begin(segment).as_ptr() as usize
    }

    /// Delivery begins: the interrupt may split the batch from now on.
    #[inline(always)]
    pub(super) fn arm(&self) {
        self.armed.store(true, Ordering::Relaxed);
        compiler_fence(Ordering::SeqCst);
    }

    /// Delivery has ended, or its activation is gone. Preemption is off.
    #[inline(always)]
    pub(super) fn disarm(&self) {
        self.armed.store(false, Ordering::Relaxed);
    }

    /// Whether the interrupt may split the batch.
    pub(super) fn is_armed(&self) -> bool {
        self.armed.load(Ordering::Relaxed)
    }

    /// Goes on in `segment` from `position` to `end`.
    pub(super) fn set_place(&self, segment: NonNull<Segment>, position: NonNull<u8>, end: NonNull<u8>) {
        self.extent.set(position, end);
        self.segment.store(segment.as_ptr(), Ordering::Relaxed);
    }

    /// There is no batch any more.
    pub(super) fn finish(&self) {
        self.segment.store(ptr::null_mut(), Ordering::Relaxed);
    }

    /// It is the lane from now on, from the beginning of this segment to `end`, and what is there was checked.
    pub(super) fn become_lane(&self, segment: NonNull<Segment>, end: NonNull<u8>) {
        self.is_unchecked.store(false, Ordering::Relaxed);
        self.set_place(segment, Segment::begin(segment), end);
        self.is_lane.store(true, Ordering::Relaxed);
    }

    /// Whether it is the lane. On its worker's core.
    #[inline(always)]
    pub(super) fn is_lane(&self) -> bool {
        self.is_lane.load(Ordering::Relaxed)
    }

    /// It is not the lane any more: there is nothing in it, or it is a batch of that mailbox's, which ends with the current envelope.
    pub(super) fn end_lane(&self, batch: Option<(&'static Mailbox, NonNull<u8>)>) {
        if let Some((mailbox, end)) = batch {
            self.mailbox.store(ptr::from_ref(mailbox).cast_mut(), Ordering::Relaxed);
            self.extent.end_at(end);
        } else {
            self.finish();
        }
        self.is_lane.store(false, Ordering::Relaxed);
    }

    /// Takes over where it came from.
    pub(super) fn set_mailbox_of(&self, other: &Self) {
        self.mailbox.store(other.mailbox.load(Ordering::Relaxed), Ordering::Relaxed);
    }

    pub(super) fn mailbox(&self) -> &'static Mailbox {
        // SAFETY: set from a static reference in `begin`, which comes before any use.
        unsafe { &*self.mailbox.load(Ordering::Relaxed) }
    }

    /// What of the current segment is its own.
    #[inline(always)]
    pub(super) fn extent(&self) -> &Extent {
        &self.extent
    }

    /// The current segment, if there is a batch.
    #[inline(always)]
    pub(super) fn segment(&self) -> Option<NonNull<Segment>> {
        NonNull::new(self.segment.load(Ordering::Relaxed))
    }

    /// The envelope that is being delivered or comes next, unless the current segment is done.
    #[inline(always)]
    pub(super) fn current(&self) -> Option<NonNull<Envelope>> {
        self.extent.current().map(NonNull::cast)
    }

    /// As [`Self::current`], were the batch not cut.
    pub(super) fn current_of_whole(&self) -> Option<NonNull<Envelope>> {
        self.extent.current_of_whole().map(NonNull::cast)
    }

    /// The envelope at the position needs no more care; it had that many bytes.
    #[inline(always)]
    pub(super) fn advance(&self, envelope: NonNull<Envelope>, bytes: usize) {
        // SAFETY: within the segment, or one past its end.
        self.extent.go_to(unsafe { envelope.cast::<u8>().add(bytes) });
    }

    /// Where its envelopes end. There is a batch.
    pub(super) fn end(&self) -> NonNull<u8> {
        // SAFETY: set from a pointer that is not null.
        unsafe { NonNull::new_unchecked(self.extent.end()) }
    }

    /// As [`Self::end`], were it not cut.
    pub(super) fn end_of_whole(&self) -> NonNull<u8> {
        // SAFETY: as above.
        unsafe { NonNull::new_unchecked(self.extent.end_of_whole()) }
    }

    /// The envelope that comes next, or the end. There is a batch.
    pub(super) fn position(&self) -> NonNull<u8> {
        // SAFETY: as above.
        unsafe { NonNull::new_unchecked(self.extent.position()) }
    }

    /// The interrupt hands everything after `envelope` to another batch. `holds_actor`: the activation keeps the actor.
    pub(super) fn split(&self, envelope: NonNull<Envelope>, holds_actor: bool) {
        // The end of an actor is noted with preemption off, so what is noted now was another envelope's. That
        // may have lain at this very address, in a segment that was used again.
        self.ended_at.store(ptr::null_mut(), Ordering::Relaxed);
        self.holds_actor.store(holds_actor, Ordering::Relaxed);
        self.extent.split(envelope.cast());
    }

    #[inline(always)]
    pub(super) fn is_split(&self) -> bool {
        self.extent.is_split()
    }

    /// Whether an interrupt has split or cut it.
    #[inline(always)]
    pub(super) fn was_changed(&self) -> bool {
        self.extent.was_changed()
    }

    /// The delivery loop is to stop behind the envelope that is being delivered, or comes next, though more follows or comes meanwhile.
    /// Senders on this core write where they did. For the interrupt, on the worker's core with preemption enabled, while the batch is
    /// armed and not split.
    pub(super) fn cut(&self) {
        if self.cut_lane() {
            // SAFETY: as in `take_gate`; the place lives as long as the batch.
            unsafe { self.mailbox().hand.move_to_batch(self.extent.whole_end_cell()) };
        }
    }

    /// As [`Self::cut`] for the lane, whose gates are the caller's business. Whether it was cut just now.
    pub(super) fn cut_lane(&self) -> bool {
        // SAFETY: measuring changes nothing; it is in the segment.
        self.extent.cut(|envelope| unsafe { envelope.add(Envelope::measure(envelope.cast())) })
    }

    /// As [`Self::mend`] for the lane.
    pub(super) fn mend_lane(&self) -> bool {
        self.extent.mend()
    }

    /// It has its end again, if it was cut. Whether it was. On the worker's core, with preemption off. The caller is the delivery loop's
    /// activation, splits the batch, or has found that activation gone: a loop that has come to the end that was cut to takes it for
    /// the batch's if it finds the batch neither cut nor split.
    pub(super) fn mend(&self) -> bool {
        let was_cut = self.mend_lane();
        if was_cut {
            self.take_gate();
        }
        was_cut
    }

    /// After a split: the envelope that this batch still has to deliver, if it has not yet.
    pub(super) fn undelivered(&self) -> Option<NonNull<Envelope>> {
        self.extent.undelivered().map(NonNull::cast)
    }

    /// The envelope that the batch was split at.
    pub(super) fn held(&self) -> Option<NonNull<Envelope>> {
        NonNull::new(self.extent.split_at().cast())
    }

    /// After a split: begins with what was in the side queue, so many messages.
    pub(super) fn begin_drain(&self, gulp: Gulp, messages: u32) {
        self.drains.store(true, Ordering::Relaxed);
        self.undrained.store(messages, Ordering::Relaxed);
        self.has_begun.store(false, Ordering::Relaxed);
        // SAFETY: the chain was taken from the side queue, so it is ours.
        self.set_place(gulp.first, gulp.head, unsafe { Segment::used_end(gulp.first) });
    }

    /// As [`Self::advance`], past one of those.
    pub(super) fn advance_drained(&self, envelope: NonNull<Envelope>, bytes: usize) {
        // An activation that is killed says how many are left.
        let _here = PreemptGuard::new();
        self.advance(envelope, bytes);
        debug_assert!(self.undrained() > 0, "more is drained than was put aside");
        self.undrained.store(self.undrained().saturating_sub(1), Ordering::Relaxed);
        self.has_begun.store(false, Ordering::Relaxed);
    }

    /// The message of the current one is delivered or dropped from here on. An activation that ends before this, because it is killed, leaves it
    /// whole.
    pub(super) fn begin_message(&self) {
        self.has_begun.store(true, Ordering::Relaxed);
    }

    /// The current one of those, if its message is not whole any more.
    pub(super) fn begun(&self) -> Option<NonNull<Envelope>> {
        self.current().filter(|_| self.has_begun.load(Ordering::Relaxed))
    }

    /// How many of those are left.
    pub(super) fn undrained(&self) -> u32 {
        self.undrained.load(Ordering::Relaxed)
    }

    /// Whether it delivers what was in the side queue.
    pub(super) fn drains(&self) -> bool {
        self.drains.load(Ordering::Relaxed)
    }

    /// The behaviour of this envelope ended its actor.
    pub(super) fn note_end(&self, envelope: NonNull<Envelope>) {
        self.ended_at.store(envelope.cast().as_ptr(), Ordering::Relaxed);
    }

    /// After a split: whether the activation holds an actor.
    pub(super) fn holds_actor(&self) -> bool {
        self.holds_actor.load(Ordering::Relaxed)
    }

    /// After a split: the actor that was held is attached again. Preemption has been off since.
    pub(super) fn note_given_back(&self) {
        self.has_given_back.store(true, Ordering::Relaxed);
    }

    /// After a split: whether the actor is another's again.
    pub(super) fn has_given_back(&self) -> bool {
        self.has_given_back.load(Ordering::Relaxed)
    }

    /// After a split: whether the actor that is held has ended.
    pub(super) fn has_ended_actor(&self) -> bool {
        self.ended_at.load(Ordering::Relaxed) == self.extent.split_at()
    }

    /// Whether this batch was split at `envelope` and holds its actor.
    pub(super) fn holds(&self, envelope: NonNull<Envelope>) -> bool {
        self.is_split() && self.holds_actor() && self.extent.split_at() == envelope.cast().as_ptr()
    }
}

#[cfg(test)]
mod tests {
    use super::Batch;
    use core::ptr::NonNull;

    #[test]
    fn an_end_at_an_address_that_is_used_again_is_not_the_held_actors() {
        let batch = Batch::new().expect("memory");
        let envelope = NonNull::dangling();
        // SAFETY: just made; freed below.
        let this = unsafe { batch.as_ref() };
        this.note_end(envelope);
        this.split(envelope, true);
        assert!(!this.has_ended_actor());
        this.note_end(envelope);
        assert!(this.has_ended_actor());
        // SAFETY: nobody else knows it.
        unsafe { Batch::free(batch) };
    }
}
