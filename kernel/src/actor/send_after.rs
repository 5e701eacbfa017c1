//! Messages to actors that are sent later: see [`crate::message::SendAfter`].

use core::time::Duration;

use super::address::Addr;
use super::behaviour::Receive;
use super::recipient::Recipient;
use crate::arch::CoreId;
use crate::message::{Message, SendAfter, SendError};
use crate::sched::Waiting;
use crate::stats;
use crate::sync::PreemptGuard;
use crate::time::{Instant, TakeBack};

/// A message that waits, and where it goes.
struct ToActor<M> {
    to: Recipient<M>,
    message: M,
}

impl<M: Message> TakeBack for ToActor<M> {
    type Taken = M;

    fn taken_back(self) -> Option<M> {
        Some(self.message)
    }
}

impl<M: Message> Waiting for ToActor<M> {
    fn now(self) -> Result<(), Self> {
        let Self { to, message } = self;
        to.send_at_once(message).map_err(|message| Self { to, message })
    }

    fn late(self) {
        if let Err(error) = self.to.send(self.message) {
            // Nobody waits for the outcome: counted as what arrives at an ended actor is.
            let here = PreemptGuard::new();
            stats::worker_here().dead_letters.bump();
            drop(here);
            drop(error);
        }
    }

    fn is_urgent(&self) -> bool {
        self.to.is_urgent()
    }

    fn stays_on(&self, core: CoreId) -> bool {
        self.to.stays_on(core)
    }
}

impl<M: Message> Recipient<M> {
    /// Sends a message after `delay`, at least. Should it be impossible then, the message is dropped and
    /// counted as a dead letter, in a process of its own.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_after(&self, delay: Duration, message: M) -> Result<SendAfter<M>, SendError<M>> {
        self.send_at(Instant::now() + delay, message)
    }

    /// Sends a message at `moment`, at least: as [`Recipient::send_after`] does.
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_at(&self, moment: Instant, message: M) -> Result<SendAfter<M>, SendError<M>> {
        SendAfter::set(moment, ToActor { to: *self, message })
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

    /// Sends a message at `moment`, at least: see [`Recipient::send_after`].
    ///
    /// # Errors
    /// [`SendError::OutOfMemory`], with the message.
    pub fn send_at<M: Message>(&self, moment: Instant, message: M) -> Result<SendAfter<M>, SendError<M>>
    where
        A: Receive<M>,
    {
        self.recipient().send_at(moment, message)
    }
}
