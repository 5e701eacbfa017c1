//! Messages to processes that are sent later: see [`crate::message::SendAfter`].

use core::time::Duration;

use super::address::ProcessAddr;
use crate::arch::CoreId;
use crate::message::{Message, SendAfter, SendError};
use crate::sched::Waiting;
use crate::time::{Instant, TakeBack};

/// A message that waits, and where it goes; without a message, an address that is to be dropped.
struct ToProcess<M> {
    to: ProcessAddr<M>,
    message: Option<M>,
}

impl<M: Message> TakeBack for ToProcess<M> {
    type Taken = M;

    fn taken_back(self) -> Option<M> {
        self.message
    }
}

impl<M: Message> Waiting for ToProcess<M> {
    fn now(self) -> Result<(), Self> {
        let Self { to, message } = self;
        // What must be dropped, or may have to be, is left for later.
        let Some(message) = message else { return Err(Self { to, message: None }) };
        match to.send_dropping_nothing(message) {
            Ok(()) => to.drop_unless_last().map_err(|to| Self { to, message: None }),
            Err(error) => Err(Self { to, message: Some(error.into_message()) }),
        }
    }

    fn late(self) {
        if let Some(Err(error)) = self.message.map(|message| self.to.send(message)) {
            // Nobody waits for the outcome.
            drop(error);
        }
    }

    fn is_urgent(&self) -> bool {
        self.to.is_urgent()
    }

    fn stays_on(&self, _: CoreId) -> bool {
        // The process may look into its mailbox whenever it runs.
        false
    }
}

impl<M: Message> ProcessAddr<M> {
    /// Sends a message after `delay`, at least. Should it be impossible then, the message is dropped, in a process of its
    /// own.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_after(&self, delay: Duration, message: M) -> Result<SendAfter<M>, SendError<M>> {
        self.send_at(Instant::now() + delay, message)
    }

    /// Sends a message at `moment`, at least: as [`Self::send_after`] does.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_at(&self, moment: Instant, message: M) -> Result<SendAfter<M>, SendError<M>> {
        SendAfter::set(moment, ToProcess { to: self.clone(), message: Some(message) })
    }
}
