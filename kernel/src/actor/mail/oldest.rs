//! Taking the oldest message out of a mailbox, where a bound wants it forgotten or nobody is left to deliver it.
//!
//! Its envelope is taken out of the queue under the lock, and the message dropped outside it, because dropping runs
//! the user's code.

use core::mem::{MaybeUninit, size_of};
use core::ptr::{self, NonNull};

use super::envelope::{Envelope, LARGEST_ENVELOPE_BYTES};
use super::mailbox::Mailbox;
use crate::actor::storage::{CellRef, Word};

/// An envelope that was taken out of its queue.
pub(crate) struct Taken {
    bytes: [MaybeUninit<u64>; LARGEST_ENVELOPE_BYTES / size_of::<u64>()],
}

impl Taken {
    /// Whom it was for.
    pub(crate) fn target(&mut self) -> (CellRef, Word) {
        let envelope = NonNull::from(&mut self.bytes).cast::<Envelope>();
        // SAFETY: the bytes are those of an envelope.
        unsafe { (envelope.as_ref().cell, envelope.as_ref().word) }
    }

    /// Whether it is a message: not the beginning of an actor.
    pub(crate) fn is_message(&mut self) -> bool {
        let envelope = NonNull::from(&mut self.bytes).cast::<Envelope>();
        // SAFETY: the bytes are those of an envelope.
        unsafe { Envelope::is_message(envelope) }
    }

    /// Drops the message.
    pub(crate) fn drop_message(mut self) {
        let envelope = NonNull::from(&mut self.bytes).cast::<Envelope>();
        // SAFETY: the bytes are those of an envelope that was not delivered, and this is done once.
        unsafe { Envelope::drop_message(envelope) };
    }
}

/// The oldest is the beginning of an actor, which must not be forgotten.
pub(crate) struct Stays;

/// Takes the oldest message out of a mailbox, to be forgotten; none if the mailbox is empty by now.
pub(crate) fn take_to_forget(mailbox: &Mailbox) -> Result<Option<Taken>, Stays> {
    let mut stays = false;
    // SAFETY: asked of an envelope that lies in the queue.
    let taken = take_if(mailbox, |envelope| unsafe {
        stays = !Envelope::is_message(envelope);
        !stays
    });
    if stays { Err(Stays) } else { Ok(taken) }
}

/// Takes the oldest envelope out of a mailbox.
pub(crate) fn take(mailbox: &Mailbox) -> Option<Taken> {
    take_if(mailbox, |_| true)
}

fn take_if(mailbox: &Mailbox, may_go: impl FnOnce(NonNull<Envelope>) -> bool) -> Option<Taken> {
    let mut inside = mailbox.inside.lock();
    let waiting = mailbox.waiting();
    if waiting == 0 {
        return None;
    }
    let oldest = inside.queue.oldest();
    if !may_go(oldest.cast()) {
        return None;
    }
    let mut taken = Taken { bytes: [MaybeUninit::uninit(); _] };
    // SAFETY: the queue is not empty, so an envelope lies there, no longer than the array. An envelope may be
    // moved, because whoever has it has its message, and the queue forgets it below.
    let bytes = unsafe {
        let bytes = Envelope::measure(oldest.cast());
        ptr::copy_nonoverlapping(oldest.as_ptr(), taken.bytes.as_mut_ptr().cast::<u8>(), bytes);
        bytes
    };
    inside.queue.skip_oldest(bytes);
    mailbox.set_waiting(waiting - 1);
    Some(taken)
}
