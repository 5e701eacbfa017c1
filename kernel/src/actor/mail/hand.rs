//! What a worker has in hand of a mailbox, and the gate through which senders on its core add to it.
//!
//! While a worker handles mail of a mailbox nobody else takes any from there. So a sender that runs on the worker's core
//! may write right behind what the worker has in hand: no lock is needed, because only code on that core touches it, with
//! preemption disabled or as one step (`arch/gate.rs`, `arch/aarch64/append.rs`).
//!
//! - The *gate* says whose core that is. It is open only while the mailbox is being processed by that core's worker, and only
//!   code on that core opens and closes it.
//! - The *cursor* leads to where the next envelope goes: the end of the batch that the worker delivers (while that is cut, the end that it
//!   will have again) or the end of what is kept here. That is mail that waits in the worker's run list, or that *follows* a batch: a batch grows by little while it is
//!   delivered, and what comes beyond that has its turn like other mailboxes' mail. It begins in the last segment of the batch,
//!   where that one ends, and goes on in others, which are linked: nothing is copied, and no lock is needed for however much.
//! - Messages keep their order. A sender adds here only while nothing waits in the mailbox's queue, and the worker takes from
//!   the queue only what comes behind all that it has in hand. Whatever a sender has put into the queue before, from whatever
//!   core, it sees as waiting, or it was taken, and then it lies in front.
//!   The sender may be suspended between its look at what waits and the append, and go on elsewhere. Meanwhile what it has sent
//!   before may go back into the queue. But a gate is open only behind a batch or behind mail that waits in hand, and whoever
//!   begins one takes all of the queue with it.
//! - In hand a mailbox is being delivered from, or is its worker's batch before that one's turn, or waits in the run list, or *rests*: all was delivered, and it is kept in hand
//!   until the worker's turn ends, because the next message often comes soon. That one puts it into the run list. For senders
//!   elsewhere it is being processed all the same: the worker looks for their mail when it puts the mailbox down.
//! - What is in hand and not delivered goes back in front of the queue.
//! - What was sent to an actor that was attached then, on this core, needs no look at its word when it is delivered
//!   ([`checks`]).
//!
//! Every access is relaxed: one core's, or ordered by the mailbox's lock or its processing flag. Other cores read the gate alone,
//! and never find their own core there; and the spare segment, which is whoever's that has the lock while the mailbox is in nobody's hand.
//!
//! Here is what a hand consists of, its gate, and mail that comes and goes. How its mail lies in segments is in [`held`], how it
//! rests in [`resting`], and where its mail goes then if not into its own segment in [`lane`], which of it was checked in [`checks`], what follows a batch in [`following`], and the segment for the next time in [`spare`].

mod checks;
mod following;
mod held;
mod lane;
mod resting;
mod spare;

use core::mem::offset_of;
use core::ptr::{self, NonNull};

pub(crate) use self::following::{Following, Room};
pub(crate) use self::held::Held;
use super::list::{List, Waiting};
use super::mailbox::FIRST_SEGMENT_BYTES;
use super::segment::Segment;
use crate::arch::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicUsize, Ordering};
use crate::arch::gate::Gate;
use crate::sync::PreemptGuard;

/// A batch grows by so much while it is delivered. What its actors send to each other beyond that follows it, or a
/// mailbox whose segment has grown would get more of a turn than others.
const MOST_GROWTH_BYTES: usize = FIRST_SEGMENT_BYTES;

/// By so much if no others wait when it begins.
const MOST_GROWTH_ALONE_BYTES: usize = 4 * FIRST_SEGMENT_BYTES;

/// Where the buffer ends for senders behind a batch, which ends at `cursor`.
#[inline(always)]
fn limit_for_batch(cursor: &AtomicPtr<u8>, segment: NonNull<Segment>, growth_bytes: usize) -> *mut u8 {
    let most = cursor.load(Ordering::Relaxed).wrapping_add(growth_bytes);
    most.min(Segment::limit(segment).as_ptr())
}

/// What is in hand of one mailbox.
pub(crate) struct Hand {
    /// Where senders on the worker's core append: behind the batch, or behind what is kept here. At rest the first one puts the
    /// mailbox into the run list.
    gate: Gate,
    /// While mail is kept here: the first segment of it. At rest: an empty one. While senders append to a batch: its last.
    segment: AtomicPtr<Segment>,
    /// Where the mail that is kept here ends.
    end: AtomicPtr<u8>,
    /// The next in the run list.
    pub(super) next: AtomicPtr<()>,
    run_list: AtomicPtr<List<Waiting>>,
    /// It is in the worker's list of what may be at rest.
    is_noted: AtomicBool,
    /// It rests, and its gate leads to its worker's lane.
    in_lane: AtomicBool,
    /// How what is in hand lies here, and whether all of it was checked: bits of `held.rs`.
    nature: AtomicU8,
    /// What is kept here follows a batch.
    follows: AtomicBool,
    /// The mailbox has no bound: its gate may be opened.
    may_open: AtomicBool,
    /// Unless that is sole: where the mail that is kept here begins in its first segment, and its last segment.
    begin: AtomicPtr<u8>,
    last: AtomicPtr<Segment>,
    /// An empty segment for the next time, or null.
    spare: AtomicPtr<Segment>,
    /// The most memory in which mail has lain here, and the most messages; many are estimated.
    most_bytes: AtomicUsize,
    /// Bytes of the mail that became a batch of late: the last time, or more, and then it gets less each time.
    recent_bytes: AtomicUsize,
    most_messages: AtomicU32,
    pub(super) next_resting: AtomicPtr<()>,
}

impl Hand {
    pub(super) fn new() -> Self {
        Self {
            gate: Gate::closed(),
            segment: AtomicPtr::new(ptr::null_mut()),
            end: AtomicPtr::new(ptr::null_mut()),
            next: AtomicPtr::new(ptr::null_mut()),
            run_list: AtomicPtr::new(ptr::null_mut()),
            is_noted: AtomicBool::new(false),
            in_lane: AtomicBool::new(false),
            nature: AtomicU8::new(0),
            follows: AtomicBool::new(false),
            may_open: AtomicBool::new(false),
            begin: AtomicPtr::new(ptr::null_mut()),
            last: AtomicPtr::new(ptr::null_mut()),
            spare: AtomicPtr::new(ptr::null_mut()),
            most_bytes: AtomicUsize::new(0),
            recent_bytes: AtomicUsize::new(0),
            most_messages: AtomicU32::new(0),
            next_resting: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// An executor begins: whether the gate may be opened from now on.
    pub(super) fn allow(&self, may_open: bool) {
        self.may_open.store(may_open, Ordering::Relaxed);
        self.most_bytes.store(0, Ordering::Relaxed);
        self.recent_bytes.store(0, Ordering::Relaxed);
        self.most_messages.store(0, Ordering::Relaxed);
    }

    /// How many bytes behind its beginning the gate lies through which senders on the worker's core append.
    pub(super) const GATE_AT: usize = offset_of!(Hand, gate);

    /// Room for `bytes` behind what is in hand, if that is on the caller's core and its segment is long enough. The caller
    /// must write an envelope of that size there. It has seen nothing wait in the queue.
    #[inline(always)]
    pub(crate) fn reserve(&self, bytes: usize, _here: &PreemptGuard) -> Option<NonNull<u8>> {
        // The cursor leads to the end in a batch of this core's worker, or to the one here.
        if self.gate.is_open() { self.gate.reserve(bytes) } else { None }
    }

    /// Whether it is in hand on the caller's core, and senders append to it.
    #[inline(always)]
    pub(crate) fn is_here(&self, _here: &PreemptGuard) -> bool {
        self.gate.is_open() || self.gate.is_at_rest()
    }

    /// Opens the gate for senders on this core: they write where `cursor` says, up to the end of `segment`, or less far behind a
    /// batch that is being delivered.
    ///
    /// # Safety
    /// The caller is on the core whose worker has the mailbox in hand. `cursor` points into `segment`, behind its last
    /// envelope, and lives until the gate is closed or the cursor moved.
    #[inline(always)]
    pub(crate) unsafe fn open_for_batch(
        &self,
        cursor: &AtomicPtr<u8>,
        segment: NonNull<Segment>,
        _here: &PreemptGuard,
    ) {
        if self.may_open.load(Ordering::Relaxed) {
            self.set_several();
            self.segment.store(segment.as_ptr(), Ordering::Relaxed);
            // SAFETY: by contract.
            unsafe { self.gate.open(cursor, limit_for_batch(cursor, segment, MOST_GROWTH_BYTES)) };
        }
    }

    /// The next envelope goes where `cursor` says, the end of another batch in the same segment, unless mail is kept here that
    /// follows.
    ///
    /// # Safety
    /// As for [`Self::open_for_batch`].
    pub(crate) unsafe fn move_to_batch(&self, cursor: &AtomicPtr<u8>) {
        if !self.follows() {
            // SAFETY: by contract.
            unsafe { self.gate.move_cursor(cursor) };
        }
    }

    /// Sole mail that is kept here, and was checked, becomes a batch, which ends where `cursor` says. Returns its segment, and
    /// where it ends.
    ///
    /// # Safety
    /// As for [`Self::open_for_batch`], and there is sole mail.
    #[inline(always)]
    pub(crate) unsafe fn become_sole_batch(&self, cursor: &AtomicPtr<u8>) -> (NonNull<Segment>, NonNull<u8>) {
        let end = self.end.load(Ordering::Relaxed);
        cursor.store(end, Ordering::Relaxed);
        // SAFETY: by contract.
        let (segment, end) = unsafe {
            self.gate.move_cursor(cursor);
            (self.noted_segment(), NonNull::new_unchecked(end))
        };
        // A plain segment is not longer than a batch may grow.
        if self.has_grown() {
            self.gate.set_limit(limit_for_batch(cursor, segment, MOST_GROWTH_BYTES));
            self.note_most_of_sole(segment, end.as_ptr().addr() - Segment::begin(segment).as_ptr().addr());
        }
        (segment, end)
    }

    /// The most memory in which mail has lain here since [`Self::allow`], and the most messages that have. Of more than a few the number is
    /// an estimate, and not too low.
    pub(crate) fn most(&self) -> (usize, u32) {
        (self.most_bytes.load(Ordering::Relaxed), self.most_messages.load(Ordering::Relaxed))
    }

    /// Closes the gate. The caller is on its core, or it is closed already.
    #[inline(always)]
    pub(crate) fn close(&self) {
        self.gate.close();
    }

    /// Mail comes into hand that waits for its turn, and the gate is opened. It `is_checked` if each of its actors was found attached, and none
    /// has gone since.
    ///
    /// # Safety
    /// The caller is on the core whose worker has the mailbox in hand from now on, and gives up the mail.
    #[inline(always)]
    pub(super) unsafe fn hold(&self, held: Held, is_checked: bool, here: &PreemptGuard) {
        if held.first == held.last && held.begin == Segment::begin(held.first) {
            self.note_sole(held.first);
            self.end.store(held.end.as_ptr(), Ordering::Relaxed);
        } else {
            self.keep(held);
        }
        if is_checked {
            self.note_checked();
        } else {
            self.note_unchecked(here);
        }
        if self.may_open.load(Ordering::Relaxed) {
            // SAFETY: by contract; the end is in the segment, and this is never freed.
            unsafe { self.gate.open(&self.end, Segment::limit(held.last).as_ptr()) };
        }
    }

    /// The mail that waits for its turn goes elsewhere: nothing is in hand any more.
    pub(super) fn give_up(&self) -> Held {
        self.close();
        let mut held = self.held();
        held.seal();
        held
    }

    /// It is nobody's any more, and leads nowhere: a mailbox is never freed, and to the collector of what crashes leave every word in it
    /// is a pointer, though the segment that it led to was freed long ago, and another's memory lies there.
    pub(super) fn reset(&self) {
        self.gate.forget();
        self.set_several();
        self.follows.store(false, Ordering::Relaxed);
        if let Some(spare) = self.take_spare() {
            // SAFETY: empty, and nobody else uses it.
            unsafe { Segment::free(spare) };
        }
        for place in [&self.end, &self.begin] {
            place.store(ptr::null_mut(), Ordering::Relaxed);
        }
        for segment in [&self.segment, &self.last] {
            segment.store(ptr::null_mut(), Ordering::Relaxed);
        }
        for link in [&self.next, &self.next_resting] {
            link.store(ptr::null_mut(), Ordering::Relaxed);
        }
        self.run_list.store(ptr::null_mut(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::{Hand, Held, Segment};
    use crate::arch::atomic::{AtomicPtr, Ordering};
    use crate::sync::PreemptGuard;
    use core::ptr;

    #[test]
    fn one_that_is_nobodys_leads_nowhere() {
        let hand = Hand::new();
        hand.allow(true);
        let (first, last) = (Segment::new(1024).expect("memory"), Segment::new(1024).expect("memory"));
        let held = Held { first, last, begin: Segment::begin(first), end: Segment::begin(last) };
        // SAFETY: the mail is given up, and there is one core.
        unsafe { hand.hold(held, true, &PreemptGuard::new()) };
        let somewhere = ptr::from_ref(&hand).cast_mut();
        hand.next.store(somewhere.cast(), Ordering::Relaxed);
        hand.next_resting.store(somewhere.cast(), Ordering::Relaxed);
        hand.run_list.store(somewhere.cast(), Ordering::Relaxed);
        hand.reset();
        fn is_null<T>(place: &AtomicPtr<T>) -> bool {
            place.load(Ordering::Relaxed).is_null()
        }
        assert!(is_null(&hand.segment) && is_null(&hand.last) && is_null(&hand.spare), "segments");
        assert!(is_null(&hand.begin) && is_null(&hand.end), "places in segments");
        assert!(is_null(&hand.next) && is_null(&hand.next_resting) && is_null(&hand.run_list), "lists");
        assert!(hand.gate.leads_nowhere(), "the gate");
        // SAFETY: made above, and nobody knows them any more.
        unsafe {
            Segment::free(first);
            Segment::free(last);
        }
    }
}
