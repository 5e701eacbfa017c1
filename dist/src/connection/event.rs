//! What a connection says to its node.

use super::ids::{CallId, LocalPid, MonitorId, RemotePid, RemoteRef, WatchId};
use crate::term::{Atom, Term, TermBuf};

/// Who of this node is meant.
///
/// ```
/// use magpie_dist::connection::{Destination, LocalPid};
/// /// Nobody else is to be reached.
/// fn is_counter(to: Destination<'_>, counter: LocalPid) -> bool {
///     match to {
///         Destination::Pid(pid) => pid == counter,
///         Destination::Name(name) => name.is("counter"),
///     }
/// }
/// assert!(is_counter(Destination::Pid(LocalPid::new(1, 0)), LocalPid::new(1, 0)));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Destination<'a> {
    /// By an address that this node gave away.
    Pid(LocalPid),
    /// By name.
    Name(Atom<'a>),
}

/// What has come in. Terms lie in the connection's buffer.
///
/// ```
/// use magpie_dist::connection::{Event, Peer, SendError};
/// use magpie_dist::term::AtomBuf;
/// /// Of a node that exports nothing.
/// fn refuse(event: Event<'_>, peer: &mut Peer, noproc: &AtomBuf) -> Result<(), SendError> {
///     match event {
///         Event::Monitored { monitor, .. } => peer.down(monitor, noproc),
///         Event::Linked { to, .. } => peer.exited(to, noproc),
///         _ => Ok(()),
///     }
/// }
/// ```
#[derive(Clone, Copy, PartialEq, Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A node of this name wants to connect: say by [`admit`](super::Connection::admit) whether it may. Only on connections that came from
    /// elsewhere.
    Named {
        /// What it calls itself.
        name: &'a str,
    },
    /// The nodes are connected.
    Up,
    /// A message.
    Message {
        /// Whose it is, if that was said.
        from: Option<RemotePid>,
        /// Whom it is for.
        to: Destination<'a>,
        /// What it says: see [`Peer::body`](super::Peer::body).
        message: Term<'a>,
    },
    /// Somebody wants to hear of an end. If it has come already, or there is no such process, say so by [`Peer::down`](super::Peer::down) now.
    Monitored {
        /// What it is answered by.
        monitor: MonitorId,
        /// Who wants to hear of it.
        from: RemotePid,
        /// Whose.
        target: Destination<'a>,
    },
    /// Somebody no longer wants to hear of it.
    Demonitored {
        /// What it would have been answered by.
        monitor: MonitorId,
    },
    /// The two end together from now on. If `to` has ended already, say so by [`Peer::exited`](super::Peer::exited) now.
    Linked {
        /// Who asked for it.
        from: RemotePid,
        /// With whom.
        to: LocalPid,
    },
    /// No longer.
    Unlinked {
        /// Who asked for it.
        from: RemotePid,
        /// With whom.
        to: LocalPid,
    },
    /// One to whom a link was has ended.
    Exit {
        /// Who.
        from: RemotePid,
        /// Whom it concerns.
        to: LocalPid,
        /// Why.
        reason: Term<'a>,
    },
    /// Somebody asks that a process end: Erlang's `exit/2`.
    ExitAsked {
        /// Who.
        from: RemotePid,
        /// Whom it concerns.
        to: LocalPid,
        /// Why.
        reason: Term<'a>,
    },
    /// One that was watched has ended.
    Down {
        /// By what.
        watch: WatchId,
        /// Who watched.
        local: LocalPid,
        /// Why.
        reason: Term<'a>,
    },
    /// A call was answered.
    Replied {
        /// Which.
        call: CallId,
        /// Who called.
        local: LocalPid,
        /// What was answered.
        reply: Term<'a>,
    },
    /// Who was called has ended, or is not there.
    CallFailed {
        /// Which call.
        call: CallId,
        /// Who called.
        local: LocalPid,
        /// Why.
        reason: Term<'a>,
    },
    /// Somebody calls a function: Erlang's `rpc:call` and `erpc:call`. It is answered by [`Peer::returned`](super::Peer::returned) or
    /// [`Peer::raised`](super::Peer::raised), unless nobody waits for that.
    Rpc {
        /// What it is answered by, if somebody waits for that.
        call: Option<MonitorId>,
        /// The function's module.
        module: Atom<'a>,
        /// The function.
        function: Atom<'a>,
        /// A list.
        arguments: Term<'a>,
    },
}

/// Whom a call's answer goes to. It may be kept until there is one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReplyTo {
    pub(super) to: RemotePid,
    pub(super) tag: Tag,
}

/// What the caller knows its answer by.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Tag {
    /// `[alias|Ref]`: it goes to the reference.
    Alias(RemoteRef),
    /// `[[alias|Ref]|_]`: the same, with more in it.
    Within(RemoteRef, TermBuf),
    /// It goes to the process.
    Any(TermBuf),
}

/// What a message is to a server of Erlang's kind.
#[derive(Clone, PartialEq, Debug)]
pub enum Body<'a> {
    /// `gen_server:call`: the caller waits for an answer.
    Call {
        /// Whom that goes to: [`Peer::reply`](super::Peer::reply).
        to: ReplyTo,
        /// What is asked.
        request: Term<'a>,
    },
    /// `gen_server:cast`.
    Cast(Term<'a>),
    /// Anything else.
    Other(Term<'a>),
}

/// What an end of the connection is to be told to, with the reason `noconnection`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Lost {
    /// Somebody watched.
    Watch(WatchId, LocalPid),
    /// Somebody was linked.
    Link(LocalPid, RemotePid),
    /// Somebody waits for an answer.
    Call(CallId, LocalPid),
    /// Somebody of theirs watched: nobody has to be told of it here.
    Monitor(MonitorId),
}

/// How a connection that came from elsewhere is answered.
///
/// ```
/// use magpie_dist::connection::Admission;
/// /// By names, when this node may have begun a connection to the same one.
/// fn admission(own: &str, other: &str, has_begun: bool) -> Admission {
///     match has_begun {
///         false => Admission::Accepted,
///         true if own > other => Admission::Refused,
///         true => Admission::Simultaneous,
///     }
/// }
/// assert_eq!(admission("b@host", "a@host", true), Admission::Refused);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// It may go on.
    Accepted,
    /// It may go on; this side's own, which is under way, will be given up. Right if this node's name is the lesser of the two, as text.
    Simultaneous,
    /// It may not go on, for this side's own is under way, which will. Right if this node's name is the greater of the two.
    Refused,
    /// It is not wanted.
    NotAllowed,
    /// There is a connection to that node: is it new, then that one is dead. If the other side says so, this one goes on.
    Alive,
}

/// What a function call ended in, if not in a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Class {
    /// `error`.
    Error,
    /// `exit`.
    Exit,
    /// `throw`.
    Throw,
}

/// What a connection has counted.
///
/// ```
/// use magpie_dist::connection::Statistics;
/// assert_eq!(Statistics::default().unknown, 0);
/// ```
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct Statistics {
    /// Frames that came in, without ticks.
    pub received: u64,
    /// Frames that went out, without ticks.
    pub sent: u64,
    /// Signals that are not known, or not for this node, or for a life of it that is over. They were dropped.
    pub unknown: u64,
    /// Processes that were to be started here: refused.
    pub spawns: u64,
    /// Monitors and links beyond the limit: refused.
    pub refused: u64,
}
