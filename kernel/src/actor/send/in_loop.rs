//! Sending by a core's loop: what timers send, and signals. It runs nothing of the application's, such as the destructor of a message that
//! a bound gives up, and what it cannot send at once comes back.

use core::mem::ManuallyDrop;

use super::{Gives, send_slowly, write_at_once};
use crate::actor::mail::envelope::{self, Inline, Packed, Target};
use crate::actor::mail::{Mailbox, directory};
use crate::actor::run::Direct;
use crate::message::{Message, SendError};
use crate::sync::PreemptGuard;

/// Sends a message if there is nothing else to do for it. The message comes back.
pub(in crate::actor) fn send_at_once<M: Message>(target: Target<M>, message: M) -> Result<(), M> {
    let word = target.cell.word_relaxed();
    if !word.is_same_actor(target.word) {
        return Err(message);
    }
    if const { envelope::is_boxed::<M>() } {
        // SAFETY: a box, as the message is one that is boxed.
        unsafe { send_packed_at_once(target, envelope::pack_boxed(message)?) }
    } else {
        // SAFETY: no box, as the message is one that is not boxed.
        unsafe { send_packed_at_once(target, Inline(message)) }
    }
}

/// # Safety
/// As [`super::send_packed`].
unsafe fn send_packed_at_once<M: Message, P: Packed<M>>(target: Target<M>, packed: P) -> Result<(), M> {
    let packed = ManuallyDrop::new(packed);
    let mailbox = directory::get(target.word.mailbox());
    // SAFETY: promised by the caller; if it is written the message is not used again, nor dropped.
    let is_written = unsafe {
        let none_waits = mailbox.waiting() == 0;
        (none_waits && write_directly(mailbox, target, &raw const *packed))
            || write_at_once(mailbox, none_waits, target, &raw const *packed)
    };
    if is_written { Ok(()) } else { Err(ManuallyDrop::into_inner(packed).unpack()) }
}

/// Makes the message at `packed` the batch of the worker that it is for, and gives that its turn, where it waits on this core and the caller is the loop there. Otherwise the
/// message stays where it is. Whether it was written.
///
/// # Safety
/// As [`write_at_once`].
#[inline(always)]
unsafe fn write_directly<M: Message, P: Packed<M>>(
    mailbox: &'static Mailbox,
    target: Target<M>,
    packed: *const P,
) -> bool {
    let bytes = const { envelope::size_of_envelope::<M>() };
    let actor = (target.cell, target.word);
    let Some(direct) = Direct::begin(mailbox, bytes, actor, PreemptGuard::new()) else { return false };
    // SAFETY: there is room for so many bytes, aligned, and the rest is promised by the caller.
    unsafe { envelope::write(direct.place(), target, packed) };
    direct.go();
    true
}

/// Sends a message, or gives it back, as [`send_at_once`]; but if it takes a look at the bound, or memory, it
/// is done. Whatever the mailbox's bound gives up when it is full, here it is this message.
pub(in crate::actor) fn send_dropping_nothing<M: Message + Copy>(
    target: Target<M>,
    message: M,
) -> Result<(), SendError<M>> {
    if send_at_once(target, message).is_ok() {
        return Ok(());
    }
    if !target.cell.word_relaxed().is_same_actor(target.word) {
        return Err(SendError::Ended(message));
    }
    let mailbox = directory::get(target.word.mailbox());
    let (cell, word, deliver) = (target.cell, target.word, target.deliver());
    if const { envelope::is_boxed::<M>() } {
        match envelope::pack_boxed(message) {
            // SAFETY: a box, as the message is one that is boxed.
            Ok(boxed) => unsafe {
                send_slowly(mailbox, cell, word, deliver, &raw const *ManuallyDrop::new(boxed), Gives::Up)
            },
            Err(message) => Err(SendError::OutOfMemory(message)),
        }
    } else {
        // SAFETY: no box, as the message is one that is not boxed.
        unsafe {
            send_slowly(mailbox, cell, word, deliver, (&raw const message).cast::<Inline<M>>(), Gives::Up)
        }
    }
}
