//! Whose is whose: short names of processes and references, and the long ones that go over the wire.

use alloc::sync::Arc;

use crate::connection::identity::Identity;
use crate::connection::ids::{LocalPid, RemotePid, RemoteRef};
use crate::term::{Atom, AtomBuf, Pid, Reference};

/// The two nodes of a connection.
#[derive(Debug)]
pub struct Names {
    pub own: Arc<Identity>,
    /// The other node's name; empty until it is known.
    pub other: AtomBuf,
    pub other_creation: u32,
    /// What makes this connection's references differ from others.
    pub salt: u32,
}

impl Names {
    pub fn local(&self, pid: LocalPid) -> Pid<'_> {
        pid.on(self.own.name.as_atom(), self.own.creation)
    }

    pub fn remote(&self, pid: RemotePid) -> Pid<'_> {
        pid.on(self.other.as_atom())
    }

    pub fn remote_reference(&self, reference: RemoteRef) -> Reference<'_> {
        reference.on(self.other.as_atom())
    }

    /// The reference of this number of ours. Its first word has 18 bits, which is all that old nodes keep of it.
    pub fn reference(&self, number: u64) -> Option<Reference<'_>> {
        let words = [(number & 0x3_ffff) as u32, (number >> 18) as u32, self.salt];
        Reference::new(self.own.name.as_atom(), self.own.creation, &words)
    }

    /// The number of a reference, if it is one of this connection's own.
    pub fn own_number(&self, reference: &Reference<'_>) -> Option<u64> {
        match *reference.words() {
            [low, high, salt] if salt == self.salt && self.is_own(reference.node, reference.creation) => {
                Some(u64::from(high) << 18 | u64::from(low))
            }
            _ => None,
        }
    }

    /// A process of this node, in this life of it.
    pub fn local_of(&self, pid: &Pid<'_>) -> Option<LocalPid> {
        self.is_own(pid.node, pid.creation).then(|| LocalPid::new(pid.id, pid.serial))
    }

    pub fn remote_of(&self, pid: &Pid<'_>) -> Option<RemotePid> {
        (pid.node == self.other.as_atom()).then(|| RemotePid::of(pid))
    }

    pub fn remote_reference_of(&self, reference: &Reference<'_>) -> Option<RemoteRef> {
        (reference.node == self.other.as_atom()).then(|| RemoteRef::of(reference))
    }

    fn is_own(&self, node: Atom<'_>, creation: u32) -> bool {
        creation == self.own.creation && node == self.own.name.as_atom()
    }
}
