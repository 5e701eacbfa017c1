//! What a worker has in hand of a mailbox, and the gate through which senders on its core add to it.
//!
//! While a worker handles mail of a mailbox nobody else takes any from there. So a sender that runs on the worker's core
//! may write right behind what the worker has in hand: no lock is needed, because only code on that core touches it, with
//! preemption disabled or as one step (`arch/gate.rs`, `arch/aarch64/append.rs`).
//!
//! - The *gate* says whose core that is. It is open only while the mailbox is being processed by that core's worker, and only
//!   code on that core opens and closes it.
//! - The *cursor* leads to where the next envelope goes: the end of the batch that the worker delivers or, while the mailbox
//!   waits in the worker's run list, the end that is kept here.
//! - Messages keep their order. A sender adds here only while nothing waits in the mailbox's queue, and the worker takes from
//!   the queue only what comes behind all that it has in hand. Whatever a sender has put into the queue before, from whatever
//!   core, it sees as waiting, or it was taken, and then it lies in front.
//!   The sender may be suspended between its look at what waits and the append, and go on elsewhere. Meanwhile what it has sent
//!   before may go back into the queue. But a gate is open only behind a batch or behind mail that waits in hand, and whoever
//!   begins one takes all of the queue with it.
//! - In hand a mailbox is being delivered from, or waits in the run list, or *rests*: all was delivered, and it is kept in hand
//!   until the worker's turn ends, because the next message often comes soon. That one puts it into the run list. For senders
//!   elsewhere it is being processed all the same: the worker looks for their mail when it puts the mailbox down.
//! - What is in hand and not delivered goes back in front of the queue.
//!
//! Every access is relaxed: one core's, or ordered by the mailbox's lock or its processing flag. Other cores read the gate alone,
//! and never find their own core there; the segment that is kept for the next time, whoever has the lock may take.

use core::ptr::{self, NonNull};

use super::list::{List, Runnable};
use super::mailbox::{FIRST_SEGMENT_BYTES, Mailbox};
use super::segment::Segment;
use crate::arch::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::arch::gate::Gate;
use crate::sync::PreemptGuard;

/// A batch grows by so much while it is delivered. What its actors send to each other beyond that goes into the queue, or a
/// mailbox whose segment has grown would get more of a turn than others.
const MOST_GROWTH_BYTES: usize = FIRST_SEGMENT_BYTES;

/// Where the buffer ends for senders behind a batch, which ends at `cursor`.
#[inline(always)]
fn limit_for_batch(cursor: &AtomicPtr<u8>, segment: NonNull<Segment>) -> *mut u8 {
    let most = cursor.load(Ordering::Relaxed).wrapping_add(MOST_GROWTH_BYTES);
    most.min(Segment::limit(segment).as_ptr())
}

/// What is in hand of one mailbox.
pub(crate) struct Hand {
    /// Where senders on the worker's core append: behind the batch or, while the mailbox waits in the run list or rests, behind
    /// what is kept here. At rest the first one puts the mailbox into the run list.
    gate: Gate,
    /// While the mailbox is in a run list: what lies in hand. At rest: an empty segment for the next time, or null.
    segment: AtomicPtr<Segment>,
    /// Where that mail ends. It begins where its segment does.
    end: AtomicPtr<u8>,
    /// The next in the run list.
    pub(super) next: AtomicPtr<Mailbox>,
    run_list: AtomicPtr<List<Runnable>>,
    /// It is in the worker's list of what may be at rest.
    is_noted: AtomicBool,
    pub(super) next_resting: AtomicPtr<Mailbox>,
    /// The mailbox has no bound: its gate may be opened.
    may_open: AtomicBool,
}

/// Mail in one segment, from its beginning on.
#[derive(Clone, Copy)]
pub(crate) struct Held {
    pub segment: NonNull<Segment>,
    /// Where the last envelope ends.
    pub end: NonNull<u8>,
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
            next_resting: AtomicPtr::new(ptr::null_mut()),
            may_open: AtomicBool::new(false),
        }
    }

    /// Whether the gate may be opened from now on.
    pub(super) fn allow(&self, may_open: bool) {
        self.may_open.store(may_open, Ordering::Relaxed);
    }

    /// Where senders on the worker's core append.
    #[inline(always)]
    pub(crate) fn gate(&self) -> &Gate {
        &self.gate
    }

    /// Room for `bytes` behind what is in hand, if that is on the caller's core and its segment is long enough. The caller
    /// must write an envelope of that size there. It has seen nothing wait in the queue.
    #[inline(always)]
    pub(crate) fn reserve(&self, bytes: usize, _here: &PreemptGuard) -> Option<NonNull<u8>> {
        // The cursor leads to the end in a batch of this core's worker, or to the one here.
        if self.gate.is_open() { self.gate.reserve(bytes) } else { None }
    }

    /// As [`Self::reserve`], if the mailbox rests in hand. What is written there is [said](Self::wake) then.
    #[inline(always)]
    pub(crate) fn reserve_at_rest(&self, bytes: usize, _here: &PreemptGuard) -> Option<NonNull<u8>> {
        if self.gate.is_at_rest() { self.gate.reserve(bytes) } else { None }
    }

    /// Mail has come for `mailbox`, whose hand this is, and which rests in it: its worker comes to it.
    #[inline(always)]
    pub(crate) fn wake(&self, mailbox: &Mailbox, _here: &PreemptGuard) {
        self.gate.wake();
        // It is a first message, and nothing that was seen before has waited since.
        mailbox.note_first();
        // SAFETY: set when it was taken, to the list of the worker that has it in hand.
        unsafe { (*self.run_list.load(Ordering::Relaxed)).push(mailbox) };
    }

    /// The first message has gone into the queue, because there was no room for it here: if the mailbox rests in hand on this
    /// core, its worker comes to it. Whether it does.
    #[inline(always)]
    pub(crate) fn wake_from_rest(&self, mailbox: &Mailbox, here: &PreemptGuard) -> bool {
        let rests = self.gate.is_at_rest();
        if rests {
            self.wake(mailbox, here);
        }
        rests
    }

    /// The mailbox comes to rest in hand, with the segment that its mail lay in, which is empty now. Returns whether it must be put
    /// into the worker's list of what may be at rest.
    ///
    /// # Safety
    /// The caller is the worker that has it in hand, and nothing of it is left. Its gate is open.
    #[inline(always)]
    pub(crate) unsafe fn rest(&self, segment: NonNull<Segment>) -> bool {
        self.segment.store(segment.as_ptr(), Ordering::Relaxed);
        self.end.store(Segment::begin(segment).as_ptr(), Ordering::Relaxed);
        // SAFETY: by contract; the end is in the segment, and this is never freed.
        unsafe { self.gate.move_cursor(&self.end) };
        self.gate.set_limit(Segment::limit(segment).as_ptr());
        self.gate.rest();
        let is_noted = self.is_noted.load(Ordering::Relaxed);
        if !is_noted {
            self.is_noted.store(true, Ordering::Relaxed);
        }
        !is_noted
    }

    /// The list that the mailbox goes into when a message comes while it rests.
    ///
    /// # Safety
    /// The list is that of the worker that has the mailbox in hand, and lives until it is put down.
    #[inline(always)]
    pub(crate) unsafe fn set_run_list(&self, run_list: &List<Runnable>) {
        self.run_list.store(ptr::from_ref(run_list).cast_mut(), Ordering::Relaxed);
    }

    /// The mailbox was taken out of the list of what may be at rest. If it rests it must be put down: the gate is closed, and the
    /// segment stays here for the next time.
    pub(crate) fn end_rest(&self) -> bool {
        self.is_noted.store(false, Ordering::Relaxed);
        let rests = self.gate.is_at_rest();
        if rests {
            self.close();
        }
        rests
    }

    /// Whether it is in the list of what may be at rest.
    #[inline(always)]
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted.load(Ordering::Relaxed)
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
            // SAFETY: by contract.
            unsafe { self.gate.open(cursor, limit_for_batch(cursor, segment)) };
        }
    }

    /// What lies in hand is a batch from now on, or another one: the next envelope goes where `cursor` says, in the same segment.
    ///
    /// # Safety
    /// As for [`Self::open_for_batch`].
    #[inline(always)]
    pub(crate) unsafe fn become_batch(&self, cursor: &AtomicPtr<u8>, segment: NonNull<Segment>) {
        // SAFETY: by contract; the segment is alive.
        unsafe {
            self.gate.move_cursor(cursor);
            if segment.as_ref().capacity_bytes() > MOST_GROWTH_BYTES {
                self.gate.set_limit(limit_for_batch(cursor, segment));
            }
        }
    }

    /// Closes the gate. The caller is on its core, or it is closed already.
    #[inline(always)]
    pub(crate) fn close(&self) {
        self.gate.close();
    }

    /// Takes the empty segment that is kept here.
    #[inline(always)]
    pub(crate) fn take_spare(&self) -> Option<NonNull<Segment>> {
        let spare = NonNull::new(self.segment.load(Ordering::Relaxed))?;
        self.segment.store(ptr::null_mut(), Ordering::Relaxed);
        Some(spare)
    }

    /// Whether an empty segment is kept here, while no mail is.
    #[inline(always)]
    pub(super) fn has_spare(&self) -> bool {
        !self.segment.load(Ordering::Relaxed).is_null()
    }

    /// Keeps an empty segment for the next time, unless there is one. Whether it was kept.
    #[inline(always)]
    pub(crate) fn keep_spare(&self, segment: NonNull<Segment>) -> bool {
        let has_none = self.segment.load(Ordering::Relaxed).is_null();
        if has_none {
            self.segment.store(segment.as_ptr(), Ordering::Relaxed);
        }
        has_none
    }

    /// Mail comes into hand that waits for its turn, and the gate is opened.
    ///
    /// # Safety
    /// The caller is on the core whose worker has the mailbox in hand from now on, and gives up the mail.
    #[inline(always)]
    pub(super) unsafe fn hold(&self, held: Held, _here: &PreemptGuard) {
        self.segment.store(held.segment.as_ptr(), Ordering::Relaxed);
        self.end.store(held.end.as_ptr(), Ordering::Relaxed);
        if self.may_open.load(Ordering::Relaxed) {
            // SAFETY: by contract; the end is in the segment, and this is never freed.
            unsafe { self.gate.open(&self.end, Segment::limit(held.segment).as_ptr()) };
        }
    }

    /// The mail that waits for its turn. Nothing is kept here any more, but the gate is as it was.
    #[inline(always)]
    pub(crate) fn take_held(&self) -> Option<Held> {
        let held = Held {
            segment: NonNull::new(self.segment.load(Ordering::Relaxed))?,
            end: NonNull::new(self.end.load(Ordering::Relaxed))?,
        };
        self.segment.store(ptr::null_mut(), Ordering::Relaxed);
        Some(held)
    }
}
