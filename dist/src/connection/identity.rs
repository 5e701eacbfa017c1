//! Who this node is, and what its connections may cost.

use alloc::string::String;
use core::fmt;

use crate::term::AtomBuf;

/// Why something is not a node's name.
///
/// ```
/// use magpie_dist::connection::{Identity, NameError};
/// assert_eq!(Identity::new("magpie", "secret", 1).unwrap_err(), NameError::Invalid);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NameError {
    /// It is not of the form `name@host`, or has more than 255 characters.
    Invalid,
    /// The creation is zero.
    Creation,
    /// There is no memory for it.
    OutOfMemory,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Invalid => "not a node's name: name@host, of 255 characters at most",
            Self::Creation => "a node's creation is not zero",
            Self::OutOfMemory => "out of memory",
        })
    }
}

impl core::error::Error for NameError {}

/// A node's name, if it is one.
pub(super) fn node_name(name: &str) -> Result<AtomBuf, NameError> {
    let is_one = name
        .split_once('@')
        .is_some_and(|(before, after)| !before.is_empty() && !after.is_empty() && !after.contains('@'));
    if !is_one || name.chars().any(char::is_control) {
        return Err(NameError::Invalid);
    }
    match AtomBuf::new(name) {
        Ok(name) => Ok(name),
        Err(crate::term::EncodeError::OutOfMemory) => Err(NameError::OutOfMemory),
        Err(_) => Err(NameError::Invalid),
    }
}

/// Who this node is: the same for all its connections.
///
/// ```
/// use magpie_dist::connection::Identity;
/// let identity = Identity::new("magpie@10.0.0.2", "secret", 1_700_000_000)?;
/// assert_eq!((identity.name(), identity.creation()), ("magpie@10.0.0.2", 1_700_000_000));
/// // What is shown to people does not have the cookie in it.
/// assert!(!format!("{identity:?}").contains("secret"));
/// # Ok::<(), magpie_dist::connection::NameError>(())
/// ```
pub struct Identity {
    pub(super) name: AtomBuf,
    pub(super) cookie: String,
    pub(super) creation: u32,
}

impl Identity {
    /// A node of this name, which has the form `name@host`. Who knows the cookie may connect. The creation tells this life of the node's from those before
    /// and after: it is another one each time, and not zero.
    ///
    /// # Errors
    /// When the name or the creation is none, and without memory.
    pub fn new(name: &str, cookie: &str, creation: u32) -> Result<Self, NameError> {
        if creation == 0 {
            return Err(NameError::Creation);
        }
        let name = node_name(name)?;
        let mut own = String::new();
        own.try_reserve_exact(cookie.len()).map_err(|_| NameError::OutOfMemory)?;
        own.push_str(cookie);
        Ok(Self { name, cookie: own, creation })
    }

    /// Its name.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    /// Which of its lives this is.
    pub const fn creation(&self) -> u32 {
        self.creation
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Identity")
            .field("name", &self.name)
            .field("creation", &self.creation)
            .finish_non_exhaustive()
    }
}

/// What a connection may cost, each with a defined outcome.
///
/// ```
/// use magpie_dist::connection::Limits;
/// let limits = Limits { frame: 64 * 1024, ..Limits::default() };
/// assert_eq!((limits.output, limits.monitors), (256 * 1024, 1024));
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How many bytes a frame may have that comes in. A longer one ends the connection.
    pub frame: usize,
    /// How many bytes may wait to be sent; 16 KiB at least. A command beyond that is [`SendError::Full`](super::SendError::Full).
    pub output: usize,
    /// How many monitors there may be, of theirs and of ours each. One more of theirs ends at once, with the reason `system_limit`.
    pub monitors: usize,
    /// How many links there may be. One more of theirs ends at once, with the reason `system_limit`.
    pub links: usize,
    /// How many calls of ours may be under way.
    pub calls: usize,
    /// How long the handshake may take, in milliseconds.
    pub handshake_ms: u64,
    /// After so many milliseconds without a byte the other side is taken for dead. Four times as often it is told that this one is not. It has to be the
    /// same for all nodes of a cluster: Erlang's `net_ticktime`.
    pub tick_ms: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            frame: 1 << 20,
            output: 256 << 10,
            monitors: 1024,
            links: 1024,
            calls: 1024,
            handshake_ms: 7000,
            tick_ms: 60_000,
        }
    }
}

/// Numbers that nobody can guess, for one connection.
///
/// ```
/// use magpie_dist::connection::Chance;
/// /// From a source of random numbers, and a count of this node's connections.
/// fn chance(random: impl Fn() -> u32, connections: u32) -> Chance {
///     Chance { challenge: random(), salt: connections }
/// }
/// assert_eq!(chance(|| 9, 1), Chance { challenge: 9, salt: 1 });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chance {
    /// What the other side has to prove its cookie with.
    pub challenge: u32,
    /// What makes this connection's references differ from those of all others that this node has in its life.
    pub salt: u32,
}
