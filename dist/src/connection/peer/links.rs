//! Links: two processes that end together. Who ends a link says so with a number, and takes no notice of the other's end until the answer has
//! come: the two may have crossed.

use super::Peer;
use crate::connection::error::SendError;
use crate::connection::ids::{LocalPid, RemotePid};
use crate::signal::Control;
use crate::term::ToTerm;

/// What is known of a link.
#[derive(Clone, Copy, Debug)]
pub struct Link {
    /// Whether there is one.
    pub is_active: bool,
    /// The number under which the last one was ended from here, until that is answered.
    pub ended: Option<u64>,
}

impl Peer {
    /// Links a process here with one of theirs. That there is no such process is heard as its end.
    ///
    /// ```
    /// use magpie_dist::connection::{LocalPid, Peer, RemotePid, SendError};
    /// fn end_together(peer: &mut Peer, own: LocalPid, other: RemotePid) -> Result<(), SendError> {
    ///     peer.link(own, other)
    /// }
    /// fn end_apart(peer: &mut Peer, own: LocalPid, other: RemotePid) -> Result<(), SendError> {
    ///     peer.unlink(own, other)
    /// }
    /// ```
    ///
    /// # Errors
    /// When it cannot be said to the other side, or not yet, and when there are as many as there may be.
    pub fn link(&mut self, local: LocalPid, remote: RemotePid) -> Result<(), SendError> {
        let known = self.links.get((local, remote)).copied();
        match known {
            Some(Link { is_active: true, .. }) => return Ok(()),
            Some(_) => {}
            None => self.links.reserve()?,
        }
        let control = Control::Link { from: self.names.local(local), to: self.names.remote(remote) };
        self.wire.put(&[(control, None)])?;
        match self.links.get_mut((local, remote)) {
            Some(link) => link.is_active = true,
            None => self.links.insert((local, remote), Link { is_active: true, ended: None })?,
        }
        Ok(())
    }

    /// Ends a link; it is no error if there is none.
    ///
    /// # Errors
    /// When it cannot be said to the other side, or not yet.
    pub fn unlink(&mut self, local: LocalPid, remote: RemotePid) -> Result<(), SendError> {
        let Some(Link { is_active: true, .. }) = self.links.get((local, remote)).copied() else {
            return Ok(());
        };
        let id = self.next();
        let (from, to) = (self.names.local(local), self.names.remote(remote));
        self.wire.put(&[(Control::Unlink { id, from, to }, None)])?;
        if let Some(link) = self.links.get_mut((local, remote)) {
            *link = Link { is_active: false, ended: Some(id) };
        }
        Ok(())
    }

    /// Asks a process of theirs to end: Erlang's `exit/2`.
    ///
    /// ```
    /// use magpie_dist::connection::{LocalPid, Peer, RemotePid, SendError};
    /// use magpie_dist::term::AtomBuf;
    /// fn stop(peer: &mut Peer, own: LocalPid, other: RemotePid, why: &AtomBuf) -> Result<(), SendError> {
    ///     peer.exit_to(own, other, why)
    /// }
    /// ```
    ///
    /// # Errors
    /// When it cannot be sent, or not yet.
    pub fn exit_to(&mut self, from: LocalPid, to: RemotePid, reason: &impl ToTerm) -> Result<(), SendError> {
        let control = Control::ExitTo { from: self.names.local(from), to: self.names.remote(to) };
        self.wire.put(&[(control, Some(reason))])
    }

    /// Says to all that a process here is linked to that it has ended.
    pub(super) fn exit_links(&mut self, local: LocalPid, reason: &dyn ToTerm) -> Result<(), SendError> {
        let mut place = 0;
        while let Some((found, pair)) = self.links.next_from(place, |(own, _), _| *own == local) {
            if self.links.get(pair).is_some_and(|link| link.is_active) {
                let control = Control::Exit { from: self.names.local(local), to: self.names.remote(pair.1) };
                self.wire.put(&[(control, Some(reason))])?;
            }
            self.links.remove(pair);
            place = found;
        }
        Ok(())
    }
}
