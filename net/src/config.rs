//! What an interface is to be like.

use core::net::Ipv4Addr;
use core::time::Duration;

use magpie_random::Random;

/// How an interface gets its address.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Addressing {
    /// From a server in the network.
    Dhcp,
    /// As given here.
    Fixed {
        /// The interface's own.
        address: Ipv4Addr,
        /// How many bits of it name the network: 32 at most.
        prefix: u8,
        /// Who forwards what goes to other networks.
        gateway: Option<Ipv4Addr>,
        /// Who is asked for names.
        names: Option<Ipv4Addr>,
    },
}

/// What an interface is to be like. Sizes are in bytes.
///
/// ```
/// use core::net::Ipv4Addr;
/// use magpie_net::{Addressing, Config};
/// let config = Config { sockets: 64, ..Config::dhcp() };
/// assert_eq!(config.addressing, Addressing::Dhcp);
/// let config = Config::fixed(Ipv4Addr::new(10, 0, 0, 1), 24);
/// assert_ne!(config.addressing, Addressing::Dhcp);
/// ```
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Config {
    /// How the interface gets its address.
    pub addressing: Addressing,
    /// How many sockets there may be, with those that a listener keeps in store and those that are being closed. Memory for their
    /// places is taken at the start.
    pub sockets: usize,
    /// What a connection receives into: its window.
    pub receive_bytes: usize,
    /// What a connection sends from: so much may be under way.
    pub send_bytes: usize,
    /// After so long without a word from the other side it is asked whether it is still there. `None`: never.
    pub keep_alive: Option<Duration>,
    /// After so long without the answer that is due, a connection is reset.
    pub timeout: Duration,
    /// A connection that is not yet established is given up after so long, when it came to a listener.
    pub half_open: Duration,
    /// A connection that nobody holds any more has so long for its end.
    pub linger: Duration,
    /// Where first sequence numbers and ports come from. It had better be another one each time, and known to nobody: who can guess the
    /// numbers can forge connections. What stands here by itself is drawn from `magpie_random`.
    pub seed: u64,
}

impl Config {
    /// With an address from a DHCP server.
    pub fn dhcp() -> Self {
        Self::new(Addressing::Dhcp)
    }

    /// With this address, without a gateway.
    pub fn fixed(address: Ipv4Addr, prefix: u8) -> Self {
        Self::new(Addressing::Fixed { address, prefix, gateway: None, names: None })
    }

    fn new(addressing: Addressing) -> Self {
        Self {
            addressing,
            sockets: 256,
            receive_bytes: 16 << 10,
            send_bytes: 16 << 10,
            keep_alive: Some(Duration::from_secs(15)),
            timeout: Duration::from_secs(60),
            half_open: Duration::from_secs(5),
            linger: Duration::from_secs(10),
            seed: Random::new().bits(),
        }
    }
}
