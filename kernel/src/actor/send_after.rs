//! Messages that are sent later: timers as messages.
//!
//! The message waits in a delayed call of the timer wheel, not in the mailbox, and counts as work there. When its
//! time has come the core whose wheel it is in sends it like any other. It is then handled, or dropped in a
//! process of its own; or it was taken back before: one of these, once.

use core::fmt;
use core::time::Duration;

use super::address::Addr;
use super::behaviour::Receive;
use super::recipient::Recipient;
use crate::message::{Message, SendError};
use crate::sched::Later;
use crate::stats;
use crate::sync::PreemptGuard;

/// A message that waits for its moment. Dropping this lets it go on.
pub struct SendAfter<M>(Later<(Recipient<M>, M)>);

impl<M: Message> SendAfter<M> {
    /// Takes the message back; `None` if it was sent already.
    pub fn cancel(self) -> Option<M> {
        self.0.cancel().map(|(_, message)| message)
    }

    /// Whether the message still waits; it may be sent at any moment.
    pub fn is_pending(&self) -> bool {
        self.0.is_pending()
    }
}

impl<M: Message> fmt::Debug for SendAfter<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_pending() { "SendAfter(pending)" } else { "SendAfter(sent)" })
    }
}

/// The moment has come. In the core's loop: gives the message back unless there is nothing to do but to send it.
fn send_now<M: Message>((to, message): (Recipient<M>, M)) -> Result<(), (Recipient<M>, M)> {
    to.send_at_once(message).map_err(|message| (to, message))
}

/// The rest, in a process.
fn send_late<M: Message>((to, message): (Recipient<M>, M)) {
    if let Err(error) = to.send(message) {
        // Nobody waits for the outcome: counted as what arrives at an ended actor is.
        let here = PreemptGuard::new();
        stats::worker_here().dead_letters.bump();
        drop(here);
        drop(error);
    }
}

impl<M: Message> Recipient<M> {
    /// Sends a message after `delay`, at least. Should it be impossible then, the message is dropped and
    /// counted as a dead letter, in a process of its own.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_after(&self, delay: Duration, message: M) -> Result<SendAfter<M>, SendError<M>> {
        Later::set(delay, (*self, message), send_now, send_late)
            .map(SendAfter)
            .map_err(|(_, (_, message))| SendError::OutOfMemory(message))
    }
}

impl<A> Addr<A> {
    /// Sends a message after `delay`, at least: see [`Recipient::send_after`].
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_after<M: Message>(&self, delay: Duration, message: M) -> Result<SendAfter<M>, SendError<M>>
    where
        A: Receive<M>,
    {
        self.recipient().send_after(delay, message)
    }
}
