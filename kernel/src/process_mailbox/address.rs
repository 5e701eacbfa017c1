//! Addresses of process mailboxes.

use core::fmt;

use super::block::{Block, Urgency};
use crate::actor::{Message, SendError, Shared};

/// Where messages to a process go. May be cloned, and used from any core; a mailbox without addresses says so
/// to its receiver.
pub struct ProcessAddr<M>(Shared<Block<M>>);

impl<M: Message> ProcessAddr<M> {
    pub(super) fn new(block: Shared<Block<M>>) -> Self {
        block.count_address();
        Self(block)
    }

    /// Sends a message. Returns the address, so that sends can be chained with `?`.
    ///
    /// # Errors
    /// The message comes back when the mailbox was dropped or its process has crashed, when as many messages
    /// wait as it is bound to, or when memory is exhausted.
    pub fn send(&self, message: M) -> Result<&Self, SendError<M>> {
        self.0.send(message, Urgency::Ordinary)?;
        Ok(self)
    }

    /// Sends a message that overtakes all ordinary ones, and no other urgent one.
    ///
    /// # Errors
    /// As [`ProcessAddr::send`].
    pub fn send_urgent(&self, message: M) -> Result<&Self, SendError<M>> {
        self.0.send(message, Urgency::Urgent)?;
        Ok(self)
    }

    /// How many messages wait.
    pub fn waiting(&self) -> usize {
        self.0.waiting().0
    }
}

impl<M> Clone for ProcessAddr<M> {
    fn clone(&self) -> Self {
        self.0.count_address();
        Self(self.0.clone())
    }
}

impl<M> Drop for ProcessAddr<M> {
    fn drop(&mut self) {
        self.0.uncount_address();
    }
}

impl<M> fmt::Debug for ProcessAddr<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ProcessAddr({:p})", &raw const *self.0)
    }
}
