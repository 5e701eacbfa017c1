//! What others want of a line.

use alloc::string::String;

use magpie::mem::Counted;
use magpie_dist::connection::RemotePid;
use magpie_dist::term::TermBuf;

use crate::error::Error;
use crate::watched::Watched;

/// Number of a call or a watch that was ordered: its own for each.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Token(pub u64);

/// Where a message goes on the other node.
#[derive(Clone, Debug)]
pub enum Place {
    /// To whoever has this name.
    Name(Counted<String>),
    /// To this process.
    Pid(RemotePid),
}

/// Somebody on another node who was monitored has ended, or the connection has.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RemoteDown {
    /// Which monitor tells this: as [`RemoteRecipient::monitor`](crate::RemoteRecipient::monitor) said.
    pub monitor: u64,
    /// Why: a term. `noconnection` when the connection has gone.
    pub reason: TermBuf,
}

/// An order.
pub enum Order {
    Send {
        to: Place,
        message: TermBuf,
    },
    Cast {
        to: Place,
        message: TermBuf,
    },
    Call {
        token: Token,
        to: Place,
        message: TermBuf,
    },
    GiveUp(Token),
    Monitor {
        to: Place,
        watched: Counted<Watched>,
    },
    Demonitor(Token),
    /// Another connection has taken its place.
    Close,
}

/// What comes of an order: an answer, if it was a call.
pub type Ordered = Result<Option<TermBuf>, Error>;
