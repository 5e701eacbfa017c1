//! Short names of what is known which node it belongs to.

use crate::term::{Atom, Pid, Reference, Words};

use super::table::Key;

/// A process of this node, as others know it.
///
/// ```
/// use magpie_dist::connection::LocalPid;
/// let pid = LocalPid::new(7, 1);
/// assert_eq!((pid.id(), pid.serial(), pid.number()), (7, 1, 1 << 32 | 7));
/// assert_eq!(LocalPid::from_number(pid.number()), pid);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LocalPid(u64);

impl LocalPid {
    /// What speaks for the node itself. No process has this one.
    pub const NODE: Self = Self(0);

    /// By its two numbers.
    pub const fn new(id: u32, serial: u32) -> Self {
        Self((serial as u64) << 32 | id as u64)
    }

    /// By both numbers in one.
    pub const fn from_number(number: u64) -> Self {
        Self(number)
    }

    /// Both numbers in one.
    pub const fn number(&self) -> u64 {
        self.0
    }

    /// Its number.
    pub const fn id(&self) -> u32 {
        self.0 as u32
    }

    /// How often the numbers have begun anew.
    pub const fn serial(&self) -> u32 {
        (self.0 >> 32) as u32
    }

    pub(super) const fn on<'a>(&self, node: Atom<'a>, creation: u32) -> Pid<'a> {
        Pid { node, id: self.id(), serial: self.serial(), creation }
    }
}

/// A process of the node at the other end.
///
/// ```
/// use magpie_dist::connection::RemotePid;
/// let pid = RemotePid { id: 90, serial: 0, creation: 1_700_000_000 };
/// assert!(pid < RemotePid { id: 91, ..pid });
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RemotePid {
    /// Its number.
    pub id: u32,
    /// How often the numbers have begun anew.
    pub serial: u32,
    /// Which life of that node's it is in.
    pub creation: u32,
}

impl RemotePid {
    pub(super) const fn of(pid: &Pid<'_>) -> Self {
        Self { id: pid.id, serial: pid.serial, creation: pid.creation }
    }

    pub(super) const fn on<'a>(&self, node: Atom<'a>) -> Pid<'a> {
        Pid { node, id: self.id, serial: self.serial, creation: self.creation }
    }
}

/// A reference of the node at the other end.
///
/// ```
/// use magpie_dist::connection::RemoteRef;
/// use magpie_dist::term::{Atom, Reference};
/// let reference = Reference::new(Atom::new("a@host")?, 1, &[7]).ok_or("too many words")?;
/// assert_eq!(RemoteRef::of(&reference), RemoteRef::of(&reference));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct RemoteRef {
    creation: u32,
    words: Words,
}

impl RemoteRef {
    /// Without the name of its node.
    pub const fn of(reference: &Reference<'_>) -> Self {
        Self { creation: reference.creation, words: reference.words }
    }

    pub(super) const fn on<'a>(&self, node: Atom<'a>) -> Reference<'a> {
        Reference { node, creation: self.creation, words: self.words }
    }
}

impl Key for RemoteRef {
    fn hash(&self) -> u64 {
        self.words.get().iter().fold(0, |hash, word| (hash ^ u64::from(*word)).wrapping_mul(0x0100_0000_01b3))
    }
}

/// A process of this node and one of the other, that are linked.
pub(super) type Pair = (LocalPid, RemotePid);

impl Key for Pair {
    fn hash(&self) -> u64 {
        let remote = u64::from(self.1.serial) << 32 | u64::from(self.1.id);
        self.0.number().wrapping_mul(0x0100_0000_01b3) ^ remote
    }
}

/// A monitor of theirs, or a call of `rpc` of theirs: what it is answered by.
///
/// ```
/// fn is_small<T: Copy + Eq + Ord + std::hash::Hash>() -> usize { size_of::<T>() }
/// assert!(is_small::<magpie_dist::connection::MonitorId>() <= 32);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct MonitorId(pub(super) RemoteRef);

/// A monitor of ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct WatchId(pub(super) u64);

impl WatchId {
    /// It as a number, which no other of this connection has.
    ///
    /// ```
    /// fn key(watch: magpie_dist::connection::WatchId) -> u64 { watch.number() }
    /// ```
    pub const fn number(&self) -> u64 {
        self.0
    }
}

/// A call of ours.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CallId(pub(super) u64);

impl CallId {
    /// It as a number, which no other of this connection has.
    ///
    /// ```
    /// fn key(call: magpie_dist::connection::CallId) -> u64 { call.number() }
    /// ```
    pub const fn number(&self) -> u64 {
        self.0
    }
}

/// Whom at the other end something is for.
///
/// ```
/// use magpie_dist::connection::{RemotePid, To};
/// let by_name = To::Name("shell");
/// let by_address = To::Pid(RemotePid { id: 90, serial: 0, creation: 4 });
/// assert_ne!(by_name, by_address);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum To<'a> {
    /// A process.
    Pid(RemotePid),
    /// Who is registered there by this name.
    Name(&'a str),
    /// Who has made this reference its alias.
    Alias(RemoteRef),
}
