//! Messages to processes that are sent later: see [`crate::actor::SendAfter`].

use core::time::Duration;

use super::address::ProcessAddr;
use crate::actor::{Message, SendError};
use crate::time::Alarm;

/// A message to a process that waits for its moment. Dropping this lets it go on.
pub struct SendAfter<M>(Alarm<(ProcessAddr<M>, M)>);

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

/// The moment has come. Called by a core loop.
fn send_now<M: Message>((to, message): (ProcessAddr<M>, M)) {
    if let Err(error) = to.send(message) {
        // Nobody waits for the outcome.
        drop(error);
    }
}

impl<M: Message> ProcessAddr<M> {
    /// Sends a message after `delay`, at least. Should it be impossible then, the message is dropped; its
    /// destructor runs in the core's own loop, so it must not panic.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_after(&self, delay: Duration, message: M) -> Result<SendAfter<M>, SendError<M>> {
        Alarm::set(delay, (self.clone(), message), send_now)
            .map(SendAfter)
            .map_err(|(_, (_, message))| SendError::OutOfMemory(message))
    }
}
