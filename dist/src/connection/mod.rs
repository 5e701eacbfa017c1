//! A connection to another node, without I/O: bytes in and events out, commands in and bytes out.
//!
//! Whoever drives it reads from the network into [`space`](Connection::space) and says so by [`received`](Connection::received), takes events
//! until there are no more, writes [`output`](Connection::output) to the network and says so by [`sent`](Connection::sent), and looks at the
//! clock at [`deadline`](Connection::deadline). What is to be said to the other node goes through its [`Peer`].
//!
//! # What is bounded
//! Frames, what waits to be sent, monitors, links and calls: see [`Limits`]. Nothing is dropped for want of room: a command says
//! [`SendError::Full`], and what comes in waits, until the network takes more, so that in the end the other side waits.

mod buffers;
mod error;
mod event;
mod greeting;
mod identity;
mod ids;
mod peer;
mod state;
mod table;

pub use error::{Closed, SendError};
pub use event::{Admission, Body, Class, Destination, Event, Lost, ReplyTo, Statistics};
pub use identity::{Chance, Identity, Limits, NameError};
pub use ids::{CallId, LocalPid, MonitorId, RemotePid, RemoteRef, To, WatchId};
pub use peer::Peer;
pub use state::Connection;
