//! A mailbox at rest in hand: all was delivered, and the next message, which often comes soon, needs no lock.
//!
//! When its worker lets it rest, and for how long, is decided in `run/worker/run_list.rs`.

use core::ptr::{self, NonNull};

use super::Hand;
use crate::actor::mail::list::{List, Waiting};
use crate::actor::mail::mailbox::Mailbox;
use crate::actor::mail::segment::Segment;
use crate::arch::atomic::Ordering;
use crate::sync::PreemptGuard;

impl Hand {
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
        unsafe { (*self.run_list.load(Ordering::Relaxed)).push(Waiting::Held(mailbox.for_ever())) };
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
    /// The caller is the worker that has it in hand, and nothing of it is left. Its gate is open. What was here is
    /// sole, and the gate's limit that of its segment, or that was [noted](Self::note_sole).
    #[inline(always)]
    pub(crate) unsafe fn rest(&self) -> bool {
        // SAFETY: by contract the batch was what is noted here.
        let begin = Segment::begin(unsafe { self.noted_segment() });
        self.end.store(begin.as_ptr(), Ordering::Relaxed);
        // SAFETY: by contract; the end is in the segment, and this is never freed.
        unsafe { self.gate.move_cursor(&self.end) };
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
    pub(crate) unsafe fn set_run_list(&self, run_list: &List<Waiting>) {
        self.run_list.store(ptr::from_ref(run_list).cast_mut(), Ordering::Relaxed);
    }

    /// The mailbox was taken out of the list of what may be at rest. If it rests it must be put down: the gate is closed, and the
    /// segment stays here for the next time.
    pub(crate) fn end_rest(&self) -> bool {
        self.is_noted.store(false, Ordering::Relaxed);
        let rests = self.gate.is_at_rest();
        if rests {
            self.close();
            // SAFETY: it rests with that segment, which is empty, and nobody else has it from now on.
            unsafe { self.keep_larger(self.noted_segment()) };
        }
        rests
    }

    /// Whether it is in the list of what may be at rest.
    #[inline(always)]
    pub(crate) fn is_noted(&self) -> bool {
        self.is_noted.load(Ordering::Relaxed)
    }
}
