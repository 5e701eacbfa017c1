//! Why something was not sent, and why a connection is no more.

use core::fmt;

use crate::term::{DecodeError, EncodeError};

/// Why a command was not carried out. Nothing has changed then.
///
/// ```
/// use magpie_dist::connection::SendError;
/// assert_eq!(SendError::Full.to_string(), "as much as may wait to be sent does so already");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum SendError {
    /// As much as may waits to be sent: it can be tried again when some of it was.
    Full,
    /// It is longer than what may wait to be sent, and will never be sent.
    TooLong,
    /// The two nodes are not connected, or not yet.
    NotUp,
    /// There are as many monitors, links or calls as there may be.
    TooMany,
    /// There is no such monitor, call or link, any more.
    Unknown,
    /// There is no memory for it.
    OutOfMemory,
    /// It has no term.
    Encode(EncodeError),
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Full => "as much as may wait to be sent does so already",
            Self::TooLong => "the message is longer than what may wait to be sent",
            Self::NotUp => "the nodes are not connected",
            Self::TooMany => "as many monitors, links or calls as there may be",
            Self::Unknown => "there is no such monitor, link or call",
            Self::OutOfMemory => "out of memory",
            Self::Encode(error) => return error.fmt(f),
        })
    }
}

impl core::error::Error for SendError {}

/// Why a connection is no more.
///
/// ```
/// use magpie_dist::connection::Closed;
/// assert_eq!(Closed::Cookie.to_string(), "the other node has another cookie");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Closed {
    /// The handshake took too long.
    Timeout,
    /// The other node has another cookie, or nobody knows ours.
    Cookie,
    /// Both sides began a connection, and the other one goes on.
    Refused,
    /// One of the sides does not want the other.
    NotAllowed,
    /// The other side has a connection already, and keeps it.
    AlreadyConnected,
    /// Somebody else is there, or the name is none that a node has.
    WrongName,
    /// The other side cannot do what has to be done: these flags are missing.
    Flags(u64),
    /// A frame is longer than the limit.
    TooLong(u32),
    /// What was said in the handshake is none of what may be said there.
    Handshake,
    /// A frame has no term where one should be, or a damaged one.
    Malformed(DecodeError),
    /// Nothing was heard for longer than the limit.
    Ticks,
    /// There is no memory for what comes in.
    OutOfMemory,
}

impl fmt::Display for Closed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Timeout => "the handshake took too long",
            Self::Cookie => "the other node has another cookie",
            Self::Refused => "another connection between the two has begun",
            Self::NotAllowed => "the other node is not wanted, or does not want this one",
            Self::AlreadyConnected => "the nodes are connected already",
            Self::WrongName => "another node, or none by its name",
            Self::Flags(missing) => return write!(f, "the other node lacks {missing:#x} of the flags"),
            Self::TooLong(length) => return write!(f, "a frame of {length} bytes, more than the limit"),
            Self::Handshake => "what came is no handshake of version 6",
            Self::Malformed(error) => return write!(f, "a damaged frame: {error}"),
            Self::Ticks => "nothing was heard of the other node for too long",
            Self::OutOfMemory => "no memory for what the other node sends",
        })
    }
}

impl core::error::Error for Closed {}
