//! What the sockets' holders ask the network's process, and what it answers.

use alloc::string::String;
use alloc::vec::Vec;
use core::net::{Ipv4Addr, SocketAddrV4};

use magpie::channel::{ProcessAddr, Request};
use magpie::mem::{Counted, OutOfMemory};
use magpie::sched::ProcessRef;

use crate::buffers::{Buffers, Datagrams};
use crate::error::Error;

/// Where the network's process is asked.
pub type Desk = ProcessAddr<Request<Command, Answer>>;
/// What it answers.
pub type Answer = Result<Outcome, Error>;

/// A socket's number: its place, and the how manieth socket it is that is there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Id {
    pub place: usize,
    pub life: u64,
}

/// Half of a connection, or another socket, is held as long as its holder has this: it is dropped with the handle, and counted by the network's process.
pub type Token = Counted<()>;

/// A new one.
pub fn token() -> Result<Token, OutOfMemory> {
    Counted::new(()).map_err(|(error, ())| error)
}

/// Both halves' tokens, and both sides' addresses.
pub struct Connection {
    pub id: Id,
    pub local: SocketAddrV4,
    pub remote: SocketAddrV4,
    pub read: Token,
    pub write: Token,
}

/// Which half of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Half {
    Read,
    Write,
}

/// What is asked.
pub enum Command {
    Connect {
        remote: SocketAddrV4,
        buffers: Buffers,
        tokens: (Token, Token),
        by: Option<ProcessRef>,
    },
    Listen {
        port: u16,
        buffers: Vec<Buffers>,
        token: Token,
        by: Option<ProcessRef>,
    },
    Accept {
        id: Id,
        buffers: Buffers,
        tokens: (Token, Token),
        by: Option<ProcessRef>,
    },
    Read {
        id: Id,
        buffer: Vec<u8>,
    },
    Write {
        id: Id,
        data: Vec<u8>,
    },
    /// No more will be written. Answered at once, or when the other side has all.
    Shutdown {
        id: Id,
        waits: bool,
    },
    Abort {
        id: Id,
    },
    Bind {
        port: u16,
        receive: Datagrams,
        send: Datagrams,
        token: Token,
        by: Option<ProcessRef>,
    },
    SendTo {
        id: Id,
        to: SocketAddrV4,
        data: Vec<u8>,
    },
    ReceiveFrom {
        id: Id,
        buffer: Vec<u8>,
    },
    /// Another process uses it now.
    Held {
        id: Id,
        half: Half,
        by: Option<ProcessRef>,
    },
    /// Somebody has dropped a token.
    Look,
    Resolve {
        name: String,
        by: Option<ProcessRef>,
    },
    Address {
        by: Option<ProcessRef>,
    },
    Statistics,
}

/// What is answered.
pub enum Outcome {
    Done,
    Connection(Connection),
    Socket {
        id: Id,
        port: u16,
    },
    /// The buffer that was sent along: filled, or emptied.
    Buffer(Vec<u8>),
    Datagram {
        from: SocketAddrV4,
        buffer: Vec<u8>,
    },
    Address {
        address: Ipv4Addr,
        prefix: u8,
    },
    Statistics(Statistics),
}

/// What an interface has counted since it was started.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct Statistics {
    /// Frames that came.
    pub received: u64,
    /// Frames that went.
    pub sent: u64,
    /// Answers that were dropped because the link had no room: the other side asks again.
    pub dropped_answers: u64,
    /// Requests for a connection that found no place at their listener, and were not answered: they come again.
    pub backlog_full: u64,
    /// Connections that were not established in time.
    pub half_open: u64,
    /// Connections that were reset because their owner crashed, or was killed.
    pub owner_crashed: u64,
    /// How often a datagram had no way, or nobody at the end of it, so that it was dropped after some seconds, with all that waited at its socket.
    pub unreachable: u64,
    /// Connections that nobody held any more, and whose end took too long.
    pub cut_off: u64,
    /// Sockets that there are now, with those in store and those that are being closed.
    pub sockets: usize,
}
