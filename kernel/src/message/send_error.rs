//! Why a message was not sent: one answer for actors and for processes that receive.

use core::fmt;

/// Why a message was not sent; it comes back.
#[derive(PartialEq, Eq)]
pub enum SendError<M> {
    /// The actor has ended, or its executor has stopped.
    Ended(M),
    /// The mailbox has as many messages as its bound allows. Try again later, or send less.
    Full(M),
    /// No memory for a message of this size, or for the mailbox to grow. Nothing else was lost.
    OutOfMemory(M),
}

impl<M> SendError<M> {
    /// The message.
    pub fn into_message(self) -> M {
        match self {
            Self::Ended(message) | Self::Full(message) | Self::OutOfMemory(message) => message,
        }
    }
}

impl<M> fmt::Debug for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<M> fmt::Display for SendError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended(_) => "the actor has ended: the message was not sent",
            Self::Full(_) => "the mailbox is full: the message was not sent; try again later",
            Self::OutOfMemory(_) => "out of memory: the message was not sent",
        })
    }
}

impl<M> core::error::Error for SendError<M> {}
