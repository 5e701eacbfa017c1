//! What can go wrong between two nodes.

use alloc::fmt;

use magpie::mem::OutOfMemory;
use magpie_dist::connection::Closed;
use magpie_dist::term::{DecodeError, EncodeError, TermBuf};

/// Why something did not come about.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// That is no other node's name, or no cookie: a name is `name@host`, of at most 255 bytes.
    Name,
    /// The node's process has ended.
    Stopped,
    /// The network says so.
    Network(magpie_net::Error),
    /// At that address there is no node of that name.
    NotFound,
    /// There is no connection, because of this.
    Closed(Closed),
    /// The connection has gone, or could not be made.
    Disconnected,
    /// As much as may be is under way to that node: try again later.
    Busy,
    /// The message is longer than a frame may be, or has no term.
    Encode(EncodeError),
    /// What came is not what was expected.
    Shape(DecodeError),
    /// No answer within the time limit. What was asked may still be done.
    TimedOut,
    /// Whoever was asked has ended, for this reason.
    Ended(TermBuf),
    /// Without memory.
    OutOfMemory,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name => f.write_str("no name of another node: it is name@host, and needs a cookie"),
            Self::Stopped => f.write_str("the node has ended"),
            Self::Network(error) => write!(f, "network: {error}"),
            Self::NotFound => f.write_str("there is no node of that name at its host"),
            Self::Closed(closed) => write!(f, "the connection was closed: {closed}"),
            Self::Disconnected => f.write_str("there is no connection to that node"),
            Self::Busy => f.write_str("too much is under way to that node: try again later"),
            Self::Encode(error) => write!(f, "it cannot be sent: {error}"),
            Self::Shape(error) => write!(f, "it is not what was expected: {error}"),
            Self::TimedOut => f.write_str("no answer within the time limit"),
            Self::Ended(reason) => write!(f, "whoever was asked has ended: {}", reason.as_term()),
            Self::OutOfMemory => f.write_str("out of memory"),
        }
    }
}

impl core::error::Error for Error {}

impl From<OutOfMemory> for Error {
    fn from(_: OutOfMemory) -> Self {
        Self::OutOfMemory
    }
}

impl From<magpie_net::Error> for Error {
    fn from(error: magpie_net::Error) -> Self {
        match error {
            magpie_net::Error::OutOfMemory => Self::OutOfMemory,
            error => Self::Network(error),
        }
    }
}

impl From<Closed> for Error {
    fn from(closed: Closed) -> Self {
        Self::Closed(closed)
    }
}

impl From<EncodeError> for Error {
    fn from(error: EncodeError) -> Self {
        Self::Encode(error)
    }
}

impl From<DecodeError> for Error {
    fn from(error: DecodeError) -> Self {
        Self::Shape(error)
    }
}
