//! How a machine is connected: by a network card, or by a serial line where the boot argument `net=line` says so. For applications that run on both.

use core::convert::Infallible;
use core::net::Ipv4Addr;

use magpie::machine;
use magpie_net::{Addressing, Config, Network};

use crate::{DriverError, card, serial};

/// On a line, as in QEMU's own network: the machine, and who is at the other end.
const HERE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 15);
const THERE: Ipv4Addr = Ipv4Addr::new(10, 0, 2, 2);
/// What a connection's buffers have on a line: less than a line at the usual speed carries in a second, after which TCP would send it again.
const LINE_BYTES: usize = 8 << 10;

/// The way out.
///
/// ```
/// use core::time::Duration;
/// use magpie::supervise::{Child, Supervisor, SupervisorRef};
/// use magpie_drivers::uplink::Uplink;
/// use magpie_net::Network;
///
/// fn start() -> magpie::Result<(Network, SupervisorRef)> {
///     let uplink = Uplink::chosen();
///     let network = Network::start(uplink.config())?;
///     let carried = network.clone();
///     let card = Child::process("card", move |_| uplink.drive("card", carried.clone()));
///     Ok((network, Supervisor::one_for_one().child(card.within(Duration::ZERO)).start()?))
/// }
/// # assert_eq!(Uplink::chosen(), Uplink::Card);
/// # let _ = start;
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Uplink {
    /// A virtio network card; the address comes from a server.
    Card,
    /// A serial line at so many bits in a second. The address is 10.0.2.15, and 10.0.2.2 that of the machine at the other end, as in QEMU's own network.
    Line {
        /// Bits in a second.
        baud: u32,
    },
}

impl Uplink {
    /// What the boot arguments say: `net=line`, and perhaps `baud=N`. Without them it is a card.
    pub fn chosen() -> Self {
        match machine::argument("net") {
            Some("line") => {
                let baud = machine::argument("baud").and_then(|text| text.parse().ok());
                Self::Line { baud: baud.unwrap_or(serial::BAUD) }
            }
            _ => Self::Card,
        }
    }

    /// What the network is to be like.
    pub fn config(self) -> Config {
        match self {
            Self::Card => Config::dhcp(),
            Self::Line { .. } => {
                let addressing =
                    Addressing::Fixed { address: HERE, prefix: 24, gateway: Some(THERE), names: None };
                Config { addressing, receive_bytes: LINE_BYTES, send_bytes: LINE_BYTES, ..Config::dhcp() }
            }
        }
    }

    /// Drives it: [`card::drive`] or [`serial::drive_at`].
    ///
    /// # Errors
    /// [`DriverError`].
    pub async fn drive(self, name: &'static str, network: Network) -> Result<Infallible, DriverError> {
        match self {
            Self::Card => card::drive(name, network).await,
            Self::Line { baud } => serial::drive_at(name, network, baud).await,
        }
    }

    /// What is to be said when the driver has ended.
    ///
    /// ```
    /// # use magpie_drivers::uplink::Uplink;
    /// assert!(Uplink::Card.missing().contains("--net"));
    /// ```
    pub const fn missing(self) -> &'static str {
        match self {
            Self::Card => {
                "there is no network card: give QEMU one by --net --forward HOST:GUEST, or a serial line by --line in place of --net"
            }
            Self::Line { .. } => {
                "there is no serial port for the network: give QEMU one by --line, or see docs/network.md for a board"
            }
        }
    }
}
