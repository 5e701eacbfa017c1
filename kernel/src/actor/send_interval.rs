//! Messages to actors that are sent again and again: see [`crate::message::SendInterval`].

use core::time::Duration;

use super::address::Addr;
use super::behaviour::Receive;
use super::recipient::Recipient;
use crate::arch::CoreId;
use crate::message::{Message, SendError, SendInterval, outcome};
use crate::sched::{Outcome, Repeating};

/// A message, and where it goes. Both may be copied, so to drop them runs nothing.
struct ToActor<M> {
    to: Recipient<M>,
    message: M,
}

impl<M: Message + Copy> Repeating for ToActor<M> {
    fn once_more(&mut self) -> Outcome {
        outcome(self.to.send_dropping_nothing(self.message))
    }

    fn end(self) -> Result<(), Self> {
        Ok(())
    }

    fn is_urgent(&self) -> bool {
        self.to.is_urgent()
    }

    fn stays_on(&self, core: CoreId) -> bool {
        self.to.stays_on(core)
    }
}

impl<M: Message + Copy> Recipient<M> {
    /// Sends a copy of `message` every `period`, first in one period, until that is given up or the actor has ended. If its
    /// mailbox is full the message is left out, whatever the mailbox's rule for that is.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    ///
    /// # Panics
    /// If the period is zero.
    #[track_caller]
    pub fn send_interval(&self, period: Duration, message: M) -> Result<SendInterval, SendError<M>> {
        SendInterval::set(period, message, ToActor { to: *self, message })
    }
}

impl<A> Addr<A> {
    /// Sends a copy of `message` every `period`: see [`Recipient::send_interval`].
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    ///
    /// # Panics
    /// If the period is zero.
    #[track_caller]
    pub fn send_interval<M: Message + Copy>(
        &self,
        period: Duration,
        message: M,
    ) -> Result<SendInterval, SendError<M>>
    where
        A: Receive<M>,
    {
        self.recipient().send_interval(period, message)
    }
}
