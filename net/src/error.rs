//! What can go wrong.

use core::fmt;

use magpie::channel::AskError;
use magpie::mem::OutOfMemory;
use magpie::sched::SpawnError;

/// Why something on the network failed.
///
/// ```
/// use magpie_net::Error;
/// assert_eq!(Error::Reset.to_string(), "the connection was reset");
/// assert_eq!(Error::from(magpie::mem::OutOfMemory), Error::OutOfMemory);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// Nobody listens there, or nobody answers.
    Refused,
    /// The connection ended before all was said: by the other side, by a time limit, or because its owner crashed.
    Reset,
    /// This side has said that it writes no more.
    Closed,
    /// The port is in use already.
    PortInUse,
    /// An address or a port that cannot be: zero, or unreachable from here.
    NoSuchAddress,
    /// No address was found for the name.
    NoSuchName,
    /// A datagram is longer than the socket's buffer.
    TooLong,
    /// The interface has as many sockets, or lookups, as it was made for.
    TooMany,
    /// Memory is used up, or the limit of who asked.
    OutOfMemory,
    /// The process of the network has ended.
    Stopped,
    /// A process could not be started.
    Spawn(SpawnError),
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Refused => "the connection was refused, or nobody answered",
            Self::Reset => "the connection was reset",
            Self::Closed => "this side of the connection was closed for writing",
            Self::PortInUse => "the port is in use",
            Self::NoSuchAddress => "the address cannot be reached from here",
            Self::NoSuchName => "no address was found for the name",
            Self::TooLong => "the datagram is longer than the socket's buffer",
            Self::TooMany => "the interface has no room for more: see Config::sockets",
            Self::OutOfMemory => "out of memory, or the limit of who asked is reached",
            Self::Stopped => "the network's process has ended",
            Self::Spawn(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for Error {}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<SpawnError> for Error {
    fn from(error: SpawnError) -> Self {
        Self::Spawn(error)
    }
}

impl From<AskError> for Error {
    fn from(error: AskError) -> Self {
        match error {
            AskError::OutOfMemory => Self::OutOfMemory,
            _ => Self::Stopped,
        }
    }
}
