//! Why a message was not sent: one answer for actors and for processes that receive.
//!
//! These errors can be shown, and passed on, whatever the message is. One that carries its message is as able to change cores
//! as that is; without it, an error is plain.

use core::fmt;

/// Why a message was not sent; it comes back.
///
/// ```
/// use magpie::actor::SendError;
/// use std::cell::Cell;
/// use std::error::Error;
/// fn pass_on(tried: Result<(), SendError<u64>>) -> Result<(), Box<dyn Error + Send + Sync>> { Ok(tried?) }
/// // What was not sent is not lost.
/// fn or_keep(tried: Result<(), SendError<u64>>, kept: &mut Vec<u64>) {
///     kept.extend(tried.map_err(SendError::into_message).err());
/// }
/// // A message that cannot be shared would make an error that cannot.
/// fn leave_it(tried: Result<(), SendError<Cell<u64>>>) -> Result<(), Box<dyn Error + Send + Sync>> {
///     tried.map_err(|error| error.without_message())?;
///     Ok(())
/// }
/// ```
///
/// ```compile_fail,E0277
/// use magpie::actor::SendError;
/// use std::cell::Cell;
/// use std::error::Error;
/// fn pass_on(tried: Result<(), SendError<Cell<u64>>>) -> Result<(), Box<dyn Error + Send + Sync>> { Ok(tried?) }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum SendError<M> {
    /// Nobody can receive it: the actor has ended, or its executor has stopped; or the process mailbox was dropped, or its
    /// process has crashed.
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

    /// The same error without the message, to be kept or passed on whatever that was.
    pub const fn without_message(&self) -> SendError<()> {
        match self {
            Self::Ended(_) => SendError::Ended(()),
            Self::Full(_) => SendError::Full(()),
            Self::OutOfMemory(_) => SendError::OutOfMemory(()),
        }
    }

    /// The same error with what `change` makes of the message.
    pub(crate) fn map<N>(self, change: impl FnOnce(M) -> N) -> SendError<N> {
        match self {
            Self::Ended(message) => SendError::Ended(change(message)),
            Self::Full(message) => SendError::Full(change(message)),
            Self::OutOfMemory(message) => SendError::OutOfMemory(change(message)),
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
            Self::Ended(_) => "the receiver has ended: the message was not sent",
            Self::Full(_) => "the mailbox is full: the message was not sent; try again later",
            Self::OutOfMemory(_) => "out of memory: the message was not sent",
        })
    }
}

impl<M> core::error::Error for SendError<M> {}

/// Why a message was not sent to all of several; the rest of them were not tried.
///
/// ```
/// use magpie::actor::{Recipient, SendToAllError};
/// /// Tells all, and passes over those who have ended.
/// fn tell(all: &[Recipient<u64>], message: u64) {
///     let mut rest = all;
///     while let Err(SendToAllError { sent, .. }) = Recipient::send_to_all(rest, &message) {
///         rest = &rest[sent + 1..];
///     }
/// }
/// /// Tells all, or says who was the first that was not told.
/// fn tell_or_say(all: &[Recipient<u64>], message: u64) -> Result<usize, SendToAllError<()>> {
///     Recipient::send_to_all(all, &message).map_err(|error| error.without_message())
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct SendToAllError<M> {
    /// How many it was sent to.
    pub sent: usize,
    /// Why it was not sent to the next one; with the copy for that one.
    pub error: SendError<M>,
}

impl<M> SendToAllError<M> {
    pub(crate) const fn new(sent: usize, error: SendError<M>) -> Self {
        Self { sent, error }
    }

    /// The same error without the message, to be kept or passed on whatever that was.
    pub const fn without_message(&self) -> SendToAllError<()> {
        SendToAllError::new(self.sent, self.error.without_message())
    }
}

impl<M> fmt::Debug for SendToAllError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl<M> fmt::Display for SendToAllError<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "after {} were sent it: {}", self.sent, self.error)
    }
}

impl<M> core::error::Error for SendToAllError<M> {}
