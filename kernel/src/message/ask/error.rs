//! Why an ask has no answer.

use core::fmt;

use crate::message::SendError;

/// Why there is no answer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AskError {
    /// The actor had ended, or the process mailbox was gone, before the request was sent.
    Ended,
    /// The mailbox is full: the request was not sent; try again later.
    Full,
    /// No memory for the request.
    OutOfMemory,
    /// The reply handle was dropped: the actor ended before it handled the request, its executor was
    /// stopped, the process mailbox was dropped, or whoever handled the request did not answer.
    Unanswered,
    /// The actor or process that was asked has crashed.
    Crashed,
    /// The time limit was reached. The request may still be handled.
    TimedOut,
}

impl fmt::Display for AskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Ended => "the receiver had ended before it was asked",
            Self::Full => "the mailbox is full: the request was not sent; try again later",
            Self::OutOfMemory => "out of memory: the request was not sent",
            Self::Unanswered => "the request was dropped without an answer",
            Self::Crashed => "the receiver that was asked has crashed",
            Self::TimedOut => "no answer within the time limit",
        })
    }
}

impl core::error::Error for AskError {}

impl<M> From<SendError<M>> for AskError {
    fn from(error: SendError<M>) -> Self {
        match error {
            SendError::Ended(_) => Self::Ended,
            SendError::Full(_) => Self::Full,
            SendError::OutOfMemory(_) => Self::OutOfMemory,
        }
    }
}
