//! What an interface is to be like.

use core::net::Ipv4Addr;
use core::time::Duration;

use magpie_random::Random;

/// A window may be no longer (RFC 7323, 2.3).
const MOST_BYTES: usize = 1 << 30;
/// What is due later than in a hundred years does not come.
const NEVER: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
/// Who asks more often than that does nothing else.
const SOONEST: Duration = Duration::from_millis(1);

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
    /// What a connection receives into: its window, of a gibibyte at most.
    pub receive_bytes: usize,
    /// What a connection sends from: so much may be under way.
    pub send_bytes: usize,
    /// After so long without a word from the other side it is asked whether it is still there: a millisecond at least. `None`: never.
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

    /// The same, with what smoltcp can count with: it panics at buffers of more than a gibibyte, and at moments that lie too far ahead.
    pub(crate) fn within_bounds(self) -> Self {
        Self {
            receive_bytes: self.receive_bytes.clamp(1, MOST_BYTES),
            send_bytes: self.send_bytes.clamp(1, MOST_BYTES),
            keep_alive: self.keep_alive.map(|after| after.clamp(SOONEST, NEVER)),
            timeout: self.timeout.min(NEVER),
            half_open: self.half_open.min(NEVER),
            linger: self.linger.min(NEVER),
            ..self
        }
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

#[cfg(test)]
mod tests {
    use super::{Config, Duration};
    use core::net::Ipv4Addr;
    use smoltcp::time::Instant;

    #[test]
    fn whatever_is_given_can_be_counted_with() {
        let usual = Config::fixed(Ipv4Addr::new(10, 0, 0, 1), 24);
        assert_eq!(usual.clone().within_bounds(), usual);
        for (bytes, time) in [(0, Duration::ZERO), (usize::MAX, Duration::MAX)] {
            let config = Config {
                receive_bytes: bytes,
                send_bytes: bytes,
                keep_alive: Some(time),
                timeout: time,
                half_open: time,
                linger: time,
                ..usual.clone()
            };
            let config = config.within_bounds();
            assert!((1..=1 << 30).contains(&config.receive_bytes));
            assert!((1..=1 << 30).contains(&config.send_bytes));
            let times = [config.keep_alive.unwrap(), config.timeout, config.half_open, config.linger];
            assert!(times[0] > Duration::ZERO);
            for time in times {
                // A machine that has run for a hundred years itself.
                let now = Instant::from_secs(100_i64 * 365 * 24 * 3600);
                assert!(now + smoltcp::time::Duration::from(time) >= now);
            }
        }
    }
}
