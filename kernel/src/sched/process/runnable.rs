//! A runnable process in hand: taken from a queue, or about to go into one.

use core::ops::Deref;
use core::ptr::NonNull;

use super::header::Header;

/// The right to run or queue a process, of which there is one: the scheduler's own reference, as long as the process
/// waits in a queue or is on its way there. It keeps the process alive; as a process in hand it is in no list.
///
/// After the idea of tokio's `Notified`.
#[must_use = "a process that is neither queued nor run is lost"]
pub(crate) struct Runnable(NonNull<Header>);

// SAFETY: processes may be handed to any core, see `ProcessRef`.
unsafe impl Send for Runnable {}

impl Runnable {
    /// # Safety
    /// The process is alive by the scheduler's own reference, which the caller has, marked as queued or running, and in
    /// no list; and nobody else has this right.
    #[inline(always)]
    pub(crate) unsafe fn new(process: NonNull<Header>) -> Self {
        Self(process)
    }

    /// For a list, or for a turn: the right goes with it.
    #[inline(always)]
    pub(crate) fn into_pointer(self) -> NonNull<Header> {
        self.0
    }
}

impl Deref for Runnable {
    type Target = Header;

    #[inline(always)]
    fn deref(&self) -> &Header {
        // SAFETY: what is in hand is alive.
        unsafe { self.0.as_ref() }
    }
}
