//! Bounds: a mailbox may refuse, or forget, what goes beyond a number of messages.
//!
//! Forgetting the oldest takes its envelope out of the queue under the lock, and drops the message outside
//! it, for dropping runs the user's code.

use core::mem::{MaybeUninit, size_of};
use core::ptr::{self, NonNull};

use super::Mailbox;
use crate::actor::envelope::{Envelope, LARGEST_ENVELOPE_BYTES};
use crate::actor::storage::{CellHeader, Word};

/// What happens to a message that would exceed a mailbox's bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenFull {
    /// The sender gets it back: [`SendError::Full`](crate::actor::SendError::Full).
    Refuse,
    /// It is dropped; the sender is not told.
    DropNewest,
    /// The oldest one waiting in the mailbox is dropped in its favour, whoever it was for.
    DropOldest,
}

/// A mailbox's bound.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Bound {
    messages: u32,
    when_full: WhenFull,
}

impl Bound {
    /// As much as memory holds.
    pub const NONE: Self = Self { messages: u32::MAX, when_full: WhenFull::Refuse };

    /// At most `messages` waiting in each mailbox, at least 1.
    pub const fn new(messages: u32, when_full: WhenFull) -> Self {
        Self { messages: if messages == 0 { 1 } else { messages }, when_full }
    }

    pub(in crate::actor) const fn is_some(self) -> bool {
        self.messages != u32::MAX
    }

    /// What to do with one more message when so many wait.
    pub(in crate::actor) fn exceeded_by(self, waiting: u32) -> Option<WhenFull> {
        (waiting >= self.messages).then_some(self.when_full)
    }
}

/// An envelope that was taken out of its queue.
pub(in crate::actor) struct Taken {
    bytes: [MaybeUninit<u64>; LARGEST_ENVELOPE_BYTES / size_of::<u64>()],
}

impl Taken {
    /// Whom it was for.
    pub(in crate::actor) fn target(&mut self) -> (NonNull<CellHeader>, Word) {
        let envelope = NonNull::from(&mut self.bytes).cast::<Envelope>();
        // SAFETY: the bytes are those of an envelope.
        unsafe { (envelope.as_ref().cell, envelope.as_ref().word) }
    }

    /// Drops the message.
    pub(in crate::actor) fn drop_message(mut self) {
        let envelope = NonNull::from(&mut self.bytes).cast::<Envelope>();
        // SAFETY: the bytes are those of an envelope that was not delivered, and this is done once.
        unsafe { Envelope::drop_message(envelope) };
    }
}

/// Takes the oldest message out of a mailbox.
pub(in crate::actor) fn take_oldest(mailbox: &Mailbox) -> Option<Taken> {
    let mut inside = mailbox.inside.lock();
    let waiting = mailbox.waiting();
    if waiting == 0 {
        return None;
    }
    let oldest = inside.queue.oldest();
    let mut taken = Taken { bytes: [MaybeUninit::uninit(); _] };
    // SAFETY: the queue is not empty, so an envelope lies there, no longer than the array. An envelope may be
    // moved, for who has it has its message, and the queue forgets it below.
    let bytes = unsafe {
        let bytes = Envelope::measure(oldest.cast());
        ptr::copy_nonoverlapping(oldest.as_ptr(), taken.bytes.as_mut_ptr().cast::<u8>(), bytes);
        bytes
    };
    inside.queue.skip_oldest(bytes);
    mailbox.set_waiting(waiting - 1);
    Some(taken)
}
