//! The other side of a connection, for who has something to say to it; what is known of monitors, links and calls between the two.

mod incoming;
mod links;
mod messages;
mod monitors;
mod names;
mod payload;
mod rpc;
mod wire;

use alloc::sync::Arc;

use super::buffers::Output;
use super::error::SendError;
use super::event::{Lost, Statistics};
use super::identity::{Chance, Identity, Limits};
use super::ids::{CallId, LocalPid, MonitorId, Pair, RemotePid, RemoteRef, WatchId};
use super::table::Table;
use crate::term::{AtomBuf, EncodeError, Pid, TermBuf};
use links::Link;
use names::Names;
use wire::Wire;

pub(super) use incoming::Step;

/// The other side of a connection.
///
/// Each command changes nothing when it fails. With [`SendError::Full`] it can be given again when some of the output was sent.
///
/// ```
/// use magpie_dist::connection::{LocalPid, Peer, SendError, To};
/// /// What a counter says to whoever is registered as `shell`.
/// fn tell(peer: &mut Peer, counter: LocalPid, count: u64) -> Result<(), SendError> {
///     peer.send(counter, To::Name("shell"), &("count is", count))
/// }
/// ```
#[derive(Debug)]
pub struct Peer {
    pub(super) names: Names,
    pub(super) wire: Wire,
    /// Theirs, of processes here.
    monitors: Table<RemoteRef, Monitor>,
    /// Ours, of processes there.
    watches: Table<u64, Watch>,
    calls: Table<u64, Call>,
    links: Table<Pair, Link>,
    /// The last number given to a reference of ours.
    last: u64,
    pub(super) statistics: Statistics,
}

/// A monitor of theirs.
#[derive(Debug)]
struct Monitor {
    from: RemotePid,
    target: Watched,
}

/// What they watch.
#[derive(Debug)]
enum Watched {
    Pid(LocalPid),
    /// By name, and whom that was.
    Name(AtomBuf, Option<LocalPid>),
    /// A function call, which is answered with this.
    Call(LocalPid, TermBuf),
}

/// A monitor of ours.
#[derive(Debug)]
struct Watch {
    local: LocalPid,
    target: Called,
}

/// A call of ours. It is a monitor, too.
#[derive(Debug)]
struct Call {
    local: LocalPid,
    target: Called,
}

/// Who of theirs.
#[derive(Debug)]
enum Called {
    Pid(RemotePid),
    Name(AtomBuf),
}

impl Peer {
    pub(super) fn new(own: Arc<Identity>, limits: &Limits, chance: Chance) -> Result<Self, SendError> {
        let other = AtomBuf::new("").map_err(|_| SendError::OutOfMemory)?;
        let output = Output::new(limits.output.max(2 * wire::SPARE));
        Ok(Self {
            names: Names { own, other, other_creation: 0, salt: chance.salt },
            wire: Wire { output, flags: 0, is_up: false, sent: 0 },
            monitors: Table::new(limits.monitors),
            watches: Table::new(limits.monitors),
            calls: Table::new(limits.calls),
            links: Table::new(limits.links),
            last: 0,
            statistics: Statistics::default(),
        })
    }

    /// The other node's name; empty until it is known.
    pub fn name(&self) -> &str {
        self.names.other.as_str()
    }

    /// Which of its lives the other node is in.
    pub const fn creation(&self) -> u32 {
        self.names.other_creation
    }

    /// The address of a process here, as it is sent to others.
    ///
    /// ```
    /// use magpie_dist::connection::{LocalPid, Peer, SendError, To};
    /// fn introduce(peer: &mut Peer, own: LocalPid) -> Result<(), SendError> {
    ///     let address = peer.pid(own).to_buf().map_err(|_| SendError::OutOfMemory)?;
    ///     peer.send(own, To::Name("registry_of_boards"), &address)
    /// }
    /// ```
    pub fn pid(&self, local: LocalPid) -> Pid<'_> {
        self.names.local(local)
    }

    /// Which process of the other side this is, if it is one.
    ///
    /// ```
    /// use magpie_dist::connection::{Peer, RemotePid};
    /// use magpie_dist::term::Term;
    /// fn whom(peer: &Peer, message: Term<'_>) -> Option<RemotePid> {
    ///     peer.remote(&message.decode().ok()?)
    /// }
    /// ```
    pub fn remote(&self, pid: &Pid<'_>) -> Option<RemotePid> {
        self.names.remote_of(pid)
    }

    /// Which process of this node this is, if it is one.
    ///
    /// ```
    /// use magpie_dist::connection::{LocalPid, Peer};
    /// use magpie_dist::term::Pid;
    /// fn is_own(peer: &Peer, pid: &Pid<'_>) -> bool { peer.local(pid).is_some() }
    /// ```
    pub fn local(&self, pid: &Pid<'_>) -> Option<LocalPid> {
        self.names.local_of(pid)
    }

    /// What was counted.
    ///
    /// ```
    /// use magpie_dist::connection::Peer;
    /// fn is_quiet(peer: &Peer) -> bool { peer.statistics().received == 0 }
    /// ```
    pub const fn statistics(&self) -> Statistics {
        Statistics { sent: self.wire.sent, ..self.statistics }
    }

    /// How many bytes wait to be sent.
    ///
    /// ```
    /// use magpie_dist::connection::Peer;
    /// fn has_been_told(peer: &Peer) -> bool { peer.waiting() == 0 }
    /// ```
    pub const fn waiting(&self) -> usize {
        self.wire.output.count()
    }

    /// How many monitors of theirs there are, monitors of ours, calls and links.
    ///
    /// ```
    /// use magpie_dist::connection::Peer;
    /// fn is_free(peer: &Peer) -> bool { peer.bonds() == [0; 4] }
    /// ```
    pub const fn bonds(&self) -> [usize; 4] {
        [self.monitors.len(), self.watches.len(), self.calls.len(), self.links.len()]
    }

    /// A number for a reference.
    const fn next(&mut self) -> u64 {
        self.last += 1;
        // As many as words of a reference hold.
        self.last & ((1 << 50) - 1)
    }

    pub(super) fn pop_lost(&mut self) -> Option<Lost> {
        if let Some((number, watch)) = self.watches.pop() {
            return Some(Lost::Watch(WatchId(number), watch.local));
        }
        if let Some((number, call)) = self.calls.pop() {
            return Some(Lost::Call(CallId(number), call.local));
        }
        if let Some((reference, _)) = self.monitors.pop() {
            return Some(Lost::Monitor(MonitorId(reference)));
        }
        while let Some(((local, remote), link)) = self.links.pop() {
            if link.is_active {
                return Some(Lost::Link(local, remote));
            }
        }
        self.monitors.clear();
        self.watches.clear();
        self.calls.clear();
        self.links.clear();
        None
    }
}

/// An atom of a name, or why not.
fn atom(name: &str) -> Result<AtomBuf, SendError> {
    AtomBuf::new(name).map_err(|error| match error {
        EncodeError::OutOfMemory => SendError::OutOfMemory,
        error => SendError::Encode(error),
    })
}
