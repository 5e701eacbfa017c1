//! Taking the oldest message out of a mailbox, where a bound wants it forgotten or nobody is left to deliver it.
//!
//! Its envelope is taken out of the queue under the lock, and the message dropped outside it, because dropping runs
//! the user's code.

use core::mem::{MaybeUninit, size_of};
use core::ptr::{self, NonNull};

use super::copy_queue::CopyQueue;
use super::envelope::{Envelope, LARGEST_ENVELOPE_BYTES};
use super::mailbox::{Locked, Mailbox};
use crate::actor::storage::{CellRef, Word};

/// Room for any envelope: more than a kilobyte, so it stays where it is made.
pub(crate) struct Room([MaybeUninit<u64>; LARGEST_ENVELOPE_BYTES / size_of::<u64>()]);

impl Room {
    pub(crate) const fn new() -> Self {
        Self([MaybeUninit::uninit(); _])
    }
}

/// An envelope that was taken out of its queue, and lies in a [`Room`].
pub(crate) struct Taken<'a>(&'a mut Room);

impl Taken<'_> {
    fn envelope(&mut self) -> NonNull<Envelope> {
        NonNull::from(&mut self.0.0).cast()
    }

    /// Whom it was for.
    pub(crate) fn target(&mut self) -> (CellRef, Word) {
        let envelope = self.envelope();
        // SAFETY: the bytes are those of an envelope.
        unsafe { (envelope.as_ref().cell, envelope.as_ref().word) }
    }

    /// Whether it is a message: not the beginning of an actor.
    pub(crate) fn is_message(&mut self) -> bool {
        // SAFETY: the bytes are those of an envelope.
        unsafe { Envelope::is_message(self.envelope()) }
    }

    /// Drops the message.
    pub(crate) fn drop_message(mut self) {
        // SAFETY: the bytes are those of an envelope that was not delivered, and this is done once.
        unsafe { Envelope::drop_message(self.envelope()) };
    }
}

/// The oldest is the beginning of an actor, which must not be forgotten.
#[derive(PartialEq, Eq)]
pub(crate) struct Stays;

/// Takes the oldest message out of a mailbox, with the lock under which the caller has seen that it is to be forgotten, and drops it without.
/// Out of line, because every sender would need the room.
#[inline(never)]
pub(crate) fn forget(mailbox: &Mailbox, inside: Locked<'_>) -> Result<(), Stays> {
    let (mut room, mut stays) = (Room::new(), false);
    let taken = take_if(mailbox, inside, &mut room, |envelope| {
        stays = !is_message(envelope);
        !stays
    });
    if let Some(taken) = taken {
        taken.drop_message();
    }
    if stays { Err(Stays) } else { Ok(()) }
}

/// Takes the oldest envelope out of a mailbox.
pub(crate) fn take<'a>(mailbox: &Mailbox, room: &'a mut Room) -> Option<Taken<'a>> {
    take_if(mailbox, mailbox.inside.lock(), room, |_| true)
}

fn take_if<'a>(
    mailbox: &Mailbox,
    mut inside: Locked<'_>,
    room: &'a mut Room,
    may_go: impl FnOnce(NonNull<Envelope>) -> bool,
) -> Option<Taken<'a>> {
    let waiting = mailbox.waiting();
    if waiting == 0 {
        return None;
    }
    let oldest = inside.queue.oldest();
    if inside.queue.is_empty() {
        // How many wait is an estimate where many were put back.
        mailbox.set_waiting(0);
        inside.queue.admit_none();
        return None;
    }
    if !may_go(oldest.cast()) {
        return None;
    }
    mailbox.set_waiting(waiting - 1);
    if waiting == 1 {
        inside.queue.admit_none();
    }
    Some(lift(&mut inside.queue, oldest, room))
}

/// Takes the oldest envelope out of a queue that is no mailbox's, if it is a message.
pub(crate) fn take_message_of<'a>(queue: &mut CopyQueue, room: &'a mut Room) -> Option<Taken<'a>> {
    let oldest = queue.oldest();
    if queue.is_empty() || !is_message(oldest.cast()) {
        return None;
    }
    Some(lift(queue, oldest, room))
}

/// Takes the oldest envelope, which is there, out of its queue, where it lies at `oldest`.
fn lift<'a>(queue: &mut CopyQueue, oldest: NonNull<u8>, room: &'a mut Room) -> Taken<'a> {
    // SAFETY: the queue is not empty, so an envelope lies there, no longer than the room. An envelope may be
    // moved, because whoever has it has its message, and the queue forgets it below.
    let bytes = unsafe {
        let bytes = Envelope::measure(oldest.cast());
        ptr::copy_nonoverlapping(oldest.as_ptr(), room.0.as_mut_ptr().cast::<u8>(), bytes);
        bytes
    };
    queue.skip_oldest(bytes);
    Taken(room)
}

fn is_message(envelope: NonNull<Envelope>) -> bool {
    // SAFETY: asked of an envelope that lies in a queue.
    unsafe { Envelope::is_message(envelope) }
}
