//! Messages to processes that are sent again and again: see [`crate::message::SendInterval`].

use core::time::Duration;

use super::address::ProcessAddr;
use crate::arch::CoreId;
use crate::message::{Message, SendError, SendInterval, outcome};
use crate::sched::{Outcome, Repeating};

/// A message, and where it goes.
struct ToProcess<M> {
    to: ProcessAddr<M>,
    message: M,
}

impl<M: Message + Copy> Repeating for ToProcess<M> {
    fn once_more(&mut self) -> Outcome {
        outcome(self.to.send_dropping_nothing(self.message))
    }

    fn end(self) -> Result<(), Self> {
        let Self { to, message } = self;
        to.drop_unless_last().map_err(|to| Self { to, message })
    }

    fn is_urgent(&self) -> bool {
        self.to.is_urgent()
    }

    fn stays_on(&self, _: CoreId) -> bool {
        // The process may look into its mailbox whenever it runs.
        false
    }
}

impl<M: Message + Copy> ProcessAddr<M> {
    /// Sends a copy of `message` every `period`, first in one period, until that is given up or the mailbox is gone. It keeps an
    /// address, so the receiver is not told that there are none as long as it goes on.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    ///
    /// # Panics
    /// If the period is zero.
    #[track_caller]
    pub fn send_interval(&self, period: Duration, message: M) -> Result<SendInterval, SendError<M>> {
        SendInterval::set(period, message, ToProcess { to: self.clone(), message })
    }
}
