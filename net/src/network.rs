//! An interface, for who uses it.

use alloc::string::String;
use core::fmt;
use core::net::{Ipv4Addr, SocketAddrV4};

use magpie::channel::ProcessAddr;
use magpie::mem::OutOfMemory;
use magpie::sched::{self, ProcessRef, Spawn};

use crate::buffers::{Buffers, Datagrams};
use crate::command::{Command, Desk, Half, Outcome, Statistics, token};
use crate::config::Config;
use crate::error::Error;
use crate::holder::Holder;
use crate::link::Feed;
use crate::pending;
use crate::stack::Stack;
use crate::tcp_listener::TcpListener;
use crate::tcp_stream::TcpStream;
use crate::udp_socket::UdpSocket;

/// An interface: may be cloned, and used from any process. Its process ends with the last of these and of its sockets.
///
/// ```
/// use core::net::Ipv4Addr;
/// use magpie_net::{Cable, Config, Error, Faults, Network};
/// # magpie::sched::run_on_threads(2, 1, async {
/// let here = Network::start(Config::fixed(Ipv4Addr::new(10, 0, 0, 1), 24))?;
/// let there = Network::start(Config::fixed(Ipv4Addr::new(10, 0, 0, 2), 24))?;
/// Cable::connect(&here, &there, Faults::none())?;
/// assert_eq!(here.address().await?, (Ipv4Addr::new(10, 0, 0, 1), 24));
/// assert_eq!(here.resolve("10.0.0.2").await?, Ipv4Addr::new(10, 0, 0, 2));
/// // Nobody listens there.
/// let nobody = here.connect("10.0.0.2:80".parse()?).await;
/// assert_eq!(nobody.map(drop), Err(Error::Refused));
/// assert!(here.statistics().await?.sent > 0);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
#[derive(Clone)]
pub struct Network {
    desk: Desk,
    feed: ProcessAddr<Feed>,
    process: ProcessRef,
    bytes: (usize, usize),
}

impl Network {
    /// Starts the interface's process, of normal priority. As yet it has no link: see [`Link`](crate::Link).
    ///
    /// # Errors
    /// Without memory, and with a fixed address that cannot be.
    pub fn start(config: Config) -> Result<Self, Error> {
        Self::start_with(Spawn::new(), config)
    }

    /// The same, with what else is to be said of the process: its priority, its core, its limit of memory.
    ///
    /// # Errors
    /// As for [`Network::start`].
    pub fn start_with(spawn: Spawn, config: Config) -> Result<Self, Error> {
        let config = config.within_bounds();
        let bytes = (config.receive_bytes, config.send_bytes);
        let (stack, desk, feed) = Stack::new(config)?;
        let process = spawn.start(stack.run())?.process().clone();
        Ok(Self { desk, feed, process, bytes })
    }

    /// The interface's process, to be watched, or killed.
    pub const fn process(&self) -> &ProcessRef {
        &self.process
    }

    pub(crate) const fn feed(&self) -> &ProcessAddr<Feed> {
        &self.feed
    }

    /// Opens a connection. The caller is charged for its buffers.
    ///
    /// # Errors
    /// When nobody listens there or answers, and without memory, or a place for it.
    pub async fn connect(&self, remote: SocketAddrV4) -> Result<TcpStream, Error> {
        let buffers = Buffers::new(self.bytes)?;
        let tokens = (token()?, token()?);
        let by = sched::current_process();
        let command = Command::Connect { remote, buffers, tokens, by: by.clone() };
        match pending::ask(&self.desk, command).await? {
            Outcome::Connection(connection) => Ok(TcpStream::new(&self.desk, connection, self.bytes, &by)),
            _ => Err(Error::Stopped),
        }
    }

    /// Listens at a port. So many connections may wait to be accepted, or be half open, one at least; who asks for more comes again later. The caller is charged for their
    /// buffers.
    ///
    /// # Errors
    /// When the port is in use, or is zero, and without memory, or places for them.
    pub async fn listen(&self, port: u16, backlog: usize) -> Result<TcpListener, Error> {
        let buffers = Buffers::several(backlog.max(1), self.bytes)?;
        let token = token()?;
        let by = sched::current_process();
        let command = Command::Listen { port, buffers, token: token.clone(), by: by.clone() };
        match pending::ask(&self.desk, command).await? {
            Outcome::Socket { id, port } => {
                let holder = Holder::new(id, Half::Read, self.desk.clone(), token, by);
                Ok(TcpListener::new(holder, port, self.bytes))
            }
            _ => Err(Error::Stopped),
        }
    }

    /// A socket for datagrams at a port, or at any if that is zero. Each way so many may wait, one at least, of so many bytes together; what comes beyond that is lost.
    /// The caller is charged for their room.
    ///
    /// # Errors
    /// When the port is in use, and without memory, or a place for it.
    pub async fn bind(&self, port: u16, most: usize, bytes: usize) -> Result<UdpSocket, Error> {
        // Without a place for one, whoever sends would wait for ever.
        let most = most.max(1);
        let (receive, send) = (Datagrams::new(most, bytes)?, Datagrams::new(most, bytes)?);
        let token = token()?;
        let by = sched::current_process();
        let command = Command::Bind { port, receive, send, token: token.clone(), by: by.clone() };
        match pending::ask(&self.desk, command).await? {
            Outcome::Socket { id, port } => {
                let holder = Holder::new(id, Half::Read, self.desk.clone(), token, by);
                Ok(UdpSocket::new(holder, port))
            }
            _ => Err(Error::Stopped),
        }
    }

    /// The address of a name, or what an address as text says.
    ///
    /// # Errors
    /// When no server knows it, or none is known or answers.
    pub async fn resolve(&self, name: &str) -> Result<Ipv4Addr, Error> {
        let mut asked = String::new();
        asked.try_reserve_exact(name.len()).map_err(|_| OutOfMemory)?;
        asked.push_str(name);
        match pending::ask(&self.desk, Command::Resolve { name: asked, by: sched::current_process() }).await?
        {
            Outcome::Address { address, .. } => Ok(address),
            _ => Err(Error::Stopped),
        }
    }

    /// Waits until the interface has an address: that, and how many bits of it name the network.
    ///
    /// # Errors
    /// When the network's process has ended.
    pub async fn address(&self) -> Result<(Ipv4Addr, u8), Error> {
        match pending::ask(&self.desk, Command::Address { by: sched::current_process() }).await? {
            Outcome::Address { address, prefix } => Ok((address, prefix)),
            _ => Err(Error::Stopped),
        }
    }

    /// What was counted.
    ///
    /// # Errors
    /// When the network's process has ended.
    pub async fn statistics(&self) -> Result<Statistics, Error> {
        match pending::ask(&self.desk, Command::Statistics).await? {
            Outcome::Statistics(statistics) => Ok(statistics),
            _ => Err(Error::Stopped),
        }
    }
}

impl fmt::Debug for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Network(process {:#x})", self.process.id())
    }
}
