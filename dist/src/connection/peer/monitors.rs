//! Who wants to hear of whose end, both ways.

use super::{Called, Monitor, Peer, Watch, Watched};
use crate::connection::error::SendError;
use crate::connection::ids::{LocalPid, MonitorId, RemoteRef, To, WatchId};
use crate::signal::{Control, Target};
use crate::term::ToTerm;

impl Peer {
    /// Watches a process of theirs, on behalf of one here: its end is [`Event::Down`](super::super::Event::Down), also if it has come already,
    /// or [`Lost::Watch`](super::super::Lost::Watch) with the connection.
    ///
    /// ```
    /// use magpie_dist::connection::{LocalPid, Peer, RemotePid, SendError, To, WatchId};
    /// fn watch(peer: &mut Peer, own: LocalPid, of: RemotePid) -> Result<WatchId, SendError> {
    ///     peer.monitor(own, To::Pid(of))
    /// }
    /// fn watch_no_longer(peer: &mut Peer, watch: WatchId) -> Result<(), SendError> {
    ///     peer.demonitor(watch)
    /// }
    /// ```
    ///
    /// # Errors
    /// When it cannot be said to the other side, or not yet, and when there are as many as there may be. An alias cannot be watched:
    /// [`SendError::Unknown`].
    pub fn monitor(&mut self, from: LocalPid, to: To<'_>) -> Result<WatchId, SendError> {
        self.watches.reserve()?;
        let target = Called::new(to)?;
        let number = self.next();
        let reference = self.names.reference(number).ok_or(SendError::Unknown)?;
        let from_pid = self.names.local(from);
        let control = Control::Monitor { from: from_pid, target: target.target(&self.names), reference };
        self.wire.put(&[(control, None)])?;
        self.watches.insert(number, Watch { local: from, target })?;
        Ok(WatchId(number))
    }

    /// Watches no longer. An end that is under way is not heard of any more.
    ///
    /// # Errors
    /// When there is no such monitor any more, and when that cannot be said to the other side, or not yet.
    pub fn demonitor(&mut self, watch: WatchId) -> Result<(), SendError> {
        let Watch { local, target } = self.watches.get(watch.0).ok_or(SendError::Unknown)?;
        let reference = self.names.reference(watch.0).ok_or(SendError::Unknown)?;
        let target = target.target(&self.names);
        let control = Control::Demonitor { from: self.names.local(*local), target, reference };
        self.wire.put(&[(control, None)])?;
        self.watches.remove(watch.0);
        Ok(())
    }

    /// Says to one who watches that whom he watches has ended, and why.
    ///
    /// ```
    /// use magpie_dist::connection::{MonitorId, Peer, SendError};
    /// use magpie_dist::term::AtomBuf;
    /// fn is_not_here(peer: &mut Peer, monitor: MonitorId, noproc: &AtomBuf) -> Result<(), SendError> {
    ///     peer.down(monitor, noproc)
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such monitor any more, and when it cannot be sent, or not yet.
    pub fn down(&mut self, monitor: MonitorId, reason: &impl ToTerm) -> Result<(), SendError> {
        self.down_any(monitor.0, reason)
    }

    pub(super) fn down_any(&mut self, reference: RemoteRef, reason: &dyn ToTerm) -> Result<(), SendError> {
        let monitor = self.monitors.get(reference).ok_or(SendError::Unknown)?;
        let to = self.names.remote(monitor.from);
        let from = match &monitor.target {
            Watched::Pid(pid) | Watched::Call(pid, _) => Target::Pid(self.names.local(*pid)),
            Watched::Name(name, _) => Target::Name(name.as_atom()),
        };
        let control = Control::Down { from, to, reference: self.names.remote_reference(reference) };
        self.wire.put(&[(control, Some(reason))])?;
        self.monitors.remove(reference);
        Ok(())
    }

    /// Says who it is that a monitor by name watches, so that [`exited`](Self::exited) finds it.
    ///
    /// ```
    /// use magpie_dist::connection::{LocalPid, MonitorId, Peer, SendError};
    /// fn is_here(peer: &mut Peer, monitor: MonitorId, counter: LocalPid) -> Result<(), SendError> {
    ///     peer.resolve(monitor, counter)
    /// }
    /// ```
    ///
    /// # Errors
    /// When there is no such monitor any more.
    pub fn resolve(&mut self, monitor: MonitorId, local: LocalPid) -> Result<(), SendError> {
        match self.monitors.get_mut(monitor.0) {
            Some(Monitor { target: Watched::Name(_, found), .. }) => {
                *found = Some(local);
                Ok(())
            }
            Some(_) => Ok(()),
            None => Err(SendError::Unknown),
        }
    }

    /// Says that a process here has ended, and why: to all who watch it, and to all it is linked to. What it watched and called itself is
    /// forgotten.
    ///
    /// ```
    /// use magpie_dist::connection::{LocalPid, Peer, SendError};
    /// /// Whether all was said; else it goes on from there when some of the output was sent.
    /// fn has_crashed(peer: &mut Peer, counter: LocalPid) -> Result<bool, SendError> {
    ///     match peer.exited(counter, &"attempt to divide by zero") {
    ///         Err(SendError::Full) => Ok(false),
    ///         other => other.map(|()| true),
    ///     }
    /// }
    /// ```
    ///
    /// # Errors
    /// When it cannot be sent, or not yet: what was said until then was said.
    pub fn exited(&mut self, local: LocalPid, reason: &impl ToTerm) -> Result<(), SendError> {
        let is = |watched: &Watched| match watched {
            Watched::Pid(pid) | Watched::Call(pid, _) | Watched::Name(_, Some(pid)) => *pid == local,
            Watched::Name(_, None) => false,
        };
        let mut place = 0;
        while let Some((found, reference)) = self.monitors.next_from(place, |_, it| is(&it.target)) {
            self.down_any(reference, reason)?;
            place = found;
        }
        self.exit_links(local, reason)?;
        let mut place = 0;
        while let Some((found, number)) = self.watches.next_from(place, |_, it| it.local == local) {
            self.demonitor(WatchId(number))?;
            place = found;
        }
        let mut place = 0;
        while let Some((found, number)) = self.calls.next_from(place, |_, it| it.local == local) {
            self.give_up(super::CallId(number))?;
            place = found;
        }
        Ok(())
    }
}
