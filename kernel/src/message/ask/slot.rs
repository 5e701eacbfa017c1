//! Slots: what an asker and the handle of its reply share.
//!
//! ```text
//!                       answer ───► Answered ──┐
//! Waiting ──────────────                       ├─ poll ──► Closed
//!    │    dropped or crashed ─────► Failed ────┘
//!    └── asker gone ─────────────────────────────────────► Closed
//! ```
//!
//! The state changes under the slot's lock, so of an answer and an asker that gives up one comes first, and
//! the answer goes to the asker or back to who gave it, never both. The asker stores its waker and looks at
//! the state in one hold of the lock, and whoever changes the state takes the waker in the same hold: no
//! change can fall between the look and the waiting.
//!
//! Two references keep a slot, the asker's and the reply handle's. The handle of a behaviour that crashed is
//! lost with its stack, and the slot's memory with it: the behaviour may have passed the handle on, so its reference is not
//! given up in its name.

use alloc::boxed::Box;
use core::mem::size_of;
use core::ptr::NonNull;
use core::task::Waker;

use super::error::AskError;
use super::pending::{Asked, PendingAsk};
use crate::mem;
use crate::stats;
use crate::sync::{PreemptGuard, SpinLock};

/// What is known about the answer.
pub(super) enum State<R> {
    /// Nothing yet; who waits for it, if somebody does.
    Waiting(Option<Waker>),
    Answered(R),
    Failed(AskError),
    /// The asker has what it wanted, or has given up.
    Closed,
}

/// One ask. The first field is what the list of pending asks links.
/// It has an allocation of its own, because it is listed wherever the future of the answer lies (see `sched::spawn::task`).
#[repr(C)]
pub(super) struct Slot<R> {
    pub(super) pending: PendingAsk,
    pub(super) state: SpinLock<State<R>>,
}

/// One of the two references to a slot.
pub(super) struct SlotRef<R>(NonNull<Slot<R>>);

// SAFETY: the state is used under its lock, the link under its list's; the answer changes cores whole.
unsafe impl<R: Send> Send for SlotRef<R> {}
// SAFETY: as above.
unsafe impl<R: Send> Sync for SlotRef<R> {}

/// Makes a slot and both references, if there is memory.
pub(super) fn create<R>(asked: Asked) -> Option<(SlotRef<R>, SlotRef<R>)> {
    let slot =
        Slot { pending: PendingAsk::new(asked, 2, crashed::<R>), state: SpinLock::new(State::Waiting(None)) };
    let slot = NonNull::from(Box::leak(mem::kernel_box(slot).ok()?));
    Some((SlotRef(slot), SlotRef(slot)))
}

impl<R> SlotRef<R> {
    /// Lists the slot under who is asked.
    pub(super) fn list(&self) {
        // SAFETY: the slot does not move; the reply's side takes it out before it lets go of it.
        unsafe { PendingAsk::insert(self.0.cast()) };
    }

    /// For the reply's side: takes it out again, if it is listed, and [settles](Self::settle) it.
    pub(super) fn unlist_and_settle(&self, outcome: State<R>) -> Option<State<R>> {
        // Whoever is killed before all is done would have the asker wait for ever.
        let _whole = PreemptGuard::new();
        // SAFETY: the slot is alive.
        unsafe { PendingAsk::remove(self.0.cast()) };
        self.settle(outcome)
    }

    /// Ends the waiting with `outcome`, which comes back when nobody waits any more. The caller has disabled preemption.
    fn settle(&self, outcome: State<R>) -> Option<State<R>> {
        let mut state = self.state.lock();
        match &mut *state {
            State::Waiting(waker) => {
                let waker = waker.take();
                *state = outcome;
                drop(state);
                if let Some(waker) = waker {
                    waker.wake();
                }
                None
            }
            State::Answered(_) | State::Failed(_) | State::Closed => Some(outcome),
        }
    }
}

impl<R> core::ops::Deref for SlotRef<R> {
    type Target = Slot<R>;

    fn deref(&self) -> &Slot<R> {
        // SAFETY: the reference keeps it.
        unsafe { self.0.as_ref() }
    }
}

impl<R> Drop for SlotRef<R> {
    fn drop(&mut self) {
        if self.pending.references.release() {
            // SAFETY: the last reference is gone; the reply's side has taken the slot out of its list. The
            // memory came from a box.
            drop(unsafe { Box::from_raw(self.0.as_ptr()) });
        }
    }
}

/// Who was asked has crashed. Called under no lock.
///
/// # Safety
/// `ask` is the first field of a `Slot<R>`, on which the caller holds a reference, which ends here.
unsafe fn crashed<R>(ask: NonNull<PendingAsk>) {
    // SAFETY: by contract.
    let slot = SlotRef::<R>(ask.cast());
    let here = PreemptGuard::new();
    stats::core_here().crash_bytes_in_doubt.add(size_of::<Slot<R>>() as u64);
    let unwanted = slot.settle(State::Failed(AskError::Crashed));
    drop(here);
    drop(unwanted);
}
