//! A node, for who uses it.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use magpie::mem::Counted;
use magpie::sched::{self, ProcessRef};
use magpie_dist::connection::RemotePid;
use magpie_dist::term::{PidBuf, ToTerm};
use magpie_net::Network;

use crate::config::Config;
use crate::desk::{Answer, Desk, DeskAddr, Orders, Wish};
use crate::error::Error;
use crate::line::Place;
use crate::lines::copy;
use crate::remote::{RemoteRecipient, shared};
use crate::shared::{Shared, Statistics};
use crate::watched::Watched;

/// So many connections may wait until they are looked at.
const BACKLOG: usize = 4;

/// A node: may be cloned, and used from any process. It lives until its process is killed, or its network ends.
#[derive(Clone)]
pub struct Node {
    desk: DeskAddr,
    shared: Arc<Shared>,
    process: ProcessRef,
}

impl Node {
    /// Starts a node on a network, as soon as that has an address, and its port mapper.
    ///
    /// # Errors
    /// With a name or a cookie that cannot be, when a port is in use, and without memory.
    pub async fn start(network: &Network, config: Config) -> Result<Self, Error> {
        let (host, _) = network.address().await?;
        let shared = Arc::new(Shared::new(config, network, host)?);
        let (desk, address) = Desk::new(shared.clone())?;
        let listener = network.listen(shared.port, BACKLOG).await?;
        let names = network.listen(shared.mapper_port, BACKLOG).await?;
        let process = sched::spawn(desk.run(listener, names)).map_err(|_| Error::OutOfMemory)?;
        Ok(Self { desk: address, shared, process: process.process().clone() })
    }

    /// Its name, with its host.
    pub fn name(&self) -> &str {
        &self.shared.name
    }

    /// Its process: killed, it takes all connections with it.
    pub const fn process(&self) -> &ProcessRef {
        &self.process
    }

    /// Connects to a node, unless that is connected.
    ///
    /// # Errors
    /// When there is none of that name, or it does not let this one in.
    pub async fn connect(&self, peer: &str) -> Result<(), Error> {
        self.line(peer).await.map(drop)
    }

    /// Whoever has `name` on another node, which is connected if it is not: takes messages of type `M`.
    ///
    /// # Errors
    /// As for [`Node::connect`].
    pub async fn recipient<M: ToTerm>(&self, peer: &str, name: &str) -> Result<RemoteRecipient<M>, Error> {
        let line = self.line(peer).await?;
        RemoteRecipient::new(self.clone(), line, peer, Place::Name(shared(name)?))
    }

    /// The process with this pid, as it came in a message: on whichever node that is, which is connected if it is not.
    ///
    /// # Errors
    /// As for [`Node::connect`].
    pub async fn process_at<M: ToTerm>(&self, pid: &PidBuf) -> Result<RemoteRecipient<M>, Error> {
        let pid = pid.as_pid();
        let peer = pid.node.as_str().ok_or(Error::Name)?;
        let line = self.line(peer).await?;
        let place = Place::Pid(RemotePid { id: pid.id, serial: pid.serial, creation: pid.creation });
        RemoteRecipient::new(self.clone(), line, peer, place)
    }

    /// Which nodes are connected.
    ///
    /// # Errors
    /// When the node has ended.
    pub async fn peers(&self) -> Result<Vec<String>, Error> {
        match self.desk.ask(Wish::Peers).await? {
            Answer::Peers(peers) => Ok(peers),
            _ => Err(Error::Stopped),
        }
    }

    /// What was counted.
    pub fn statistics(&self) -> Statistics {
        self.shared.statistics()
    }

    pub(crate) async fn line(&self, peer: &str) -> Result<Orders, Error> {
        if !peer.contains('@') || peer.len() > 255 || peer == self.shared.name {
            return Err(Error::Name);
        }
        match self.desk.ask(Wish::Line { peer: copy(peer)? }).await? {
            Answer::Line(orders) => Ok(orders),
            _ => Err(Error::Stopped),
        }
    }

    /// Notes a monitor of somebody there. The line to that node, if there is one.
    pub(crate) async fn watch(
        &self,
        peer: &Counted<String>,
        watched: &Counted<Watched>,
    ) -> Result<Orders, Error> {
        match self.desk.ask(Wish::Watch { peer: peer.clone(), watched: watched.clone() }).await? {
            Answer::Line(orders) => Ok(orders),
            _ => Err(Error::Stopped),
        }
    }

    pub(crate) fn longest(&self) -> usize {
        self.shared.limits.frame
    }
}

impl fmt::Debug for Node {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Node({})", self.shared.name)
    }
}
