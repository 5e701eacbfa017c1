//! Messages to processes that are sent later, as timers are: a message waits in the timer wheel and is sent when it is due.

use core::time::Duration;

use super::address::ProcessAddr;
use crate::message::{Message, SendError};
use crate::sched::Later;

/// A message to a process that waits for its moment. Dropping this lets it go on.
pub struct SendAfter<M>(Later<Waiting<M>>);

/// A message and where it goes; without a message, an address that is to be dropped.
type Waiting<M> = (ProcessAddr<M>, Option<M>);

impl<M: Message> SendAfter<M> {
    /// Takes the message back; `None` if it was sent already.
    pub fn cancel(self) -> Option<M> {
        self.0.cancel().and_then(|(_, message)| message)
    }

    /// Whether the message still waits; it may be sent at any moment.
    pub fn is_pending(&self) -> bool {
        self.0.is_pending()
    }
}

/// The moment has come. In the core's loop: gives back what must be dropped, or may have to be.
fn send_now<M: Message>((to, message): Waiting<M>) -> Result<(), Waiting<M>> {
    let Some(message) = message else { return Err((to, None)) };
    match to.send_dropping_nothing(message) {
        Ok(()) => to.drop_unless_last().map_err(|to| (to, None)),
        Err(error) => Err((to, Some(error.into_message()))),
    }
}

/// The rest, in a process.
fn send_late<M: Message>((to, message): Waiting<M>) {
    if let Some(Err(error)) = message.map(|message| to.send(message)) {
        // Nobody waits for the outcome.
        drop(error);
    }
}

impl<M: Message> ProcessAddr<M> {
    /// Sends a message after `delay`, at least. Should it be impossible then, the message is dropped, in a process of its
    /// own.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_after(&self, delay: Duration, message: M) -> Result<SendAfter<M>, SendError<M>> {
        let message = match Later::set(delay, (self.clone(), Some(message)), send_now, send_late) {
            Ok(later) => return Ok(SendAfter(later)),
            Err((_, (_, message))) => message,
        };
        match message {
            Some(message) => Err(SendError::OutOfMemory(message)),
            None => unreachable!("what was not kept came back without its message"),
        }
    }
}
