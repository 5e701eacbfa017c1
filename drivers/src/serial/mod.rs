//! The network over a serial line, for a machine without a network card: IP packets in [SLIP](https://www.rfc-editor.org/rfc/rfc1055), which Linux speaks, too (`slattach`), and the host tool
//! (`cargo xtask line`).
//!
//! The port is one beside the console's: a PL011, which the Raspberry Pi 4 has four more of at its pins and QEMU's `virt` a second, or the mini UART, which is the second of QEMU's
//! `raspi4b`. Where its interrupt is another's, as those of the Raspberry Pi 4's PL011s are the console's, it is looked at every millisecond. What a full line has no room for waits, in the
//! end with who has written it; what is garbled or lost on the way is not noticed here, and is sent again by TCP.
//!
//! ```text
//! magpie-net --- frames --- carry --- packets --- slip --- bytes --- port
//!                             \- ethernet: heads off and on, answers to ARP
//! ```

mod carry;
mod ethernet;
mod mini_uart;
mod pl011;
mod port;
mod slip;

use core::convert::Infallible;

use magpie::channel::ProcessMailbox;
use magpie::registry;
use magpie_net::{Link, Network};

use self::carry::Carrier;
use self::port::Port;
use crate::DriverError;

/// Bits in a second, unless another number is said.
pub const BAUD: u32 = 115_200;

/// Drives the first serial port that nobody drives, at [`BAUD`], and is the network's link. It returns only if it cannot, or cannot any more. The process has this name, by which it can be
/// found, and killed.
///
/// There is nobody on the line who gives addresses: the network has a fixed one, and as its gateway the machine at the other end. If the driver crashes, or is killed, the port is quiet at
/// once. Connections stay, and go on when a supervisor has started it anew:
///
/// ```
/// use core::net::Ipv4Addr;
/// use core::time::Duration;
/// use magpie::sched::{Priority, Spawn};
/// use magpie::supervise::{Child, Supervisor, SupervisorRef};
/// use magpie_drivers::serial;
/// use magpie_net::{Addressing, Config, Network};
///
/// fn start() -> magpie::Result<(Network, SupervisorRef)> {
///     let mut config = Config::fixed(Ipv4Addr::new(10, 0, 2, 15), 24);
///     if let Addressing::Fixed { gateway, .. } = &mut config.addressing {
///         *gateway = Some(Ipv4Addr::new(10, 0, 2, 2));
///     }
///     let network = Network::start(config)?;
///     let carried = network.clone();
///     // A queue of sixteen bytes is full after a millisecond and a half.
///     let line = Child::process("line", move |_| serial::drive("line", carried.clone()))
///         .within(Duration::ZERO)
///         .with(Spawn::new().priority(Priority::High));
///     Ok((network, Supervisor::one_for_one().child(line).start()?))
/// }
/// # let _ = start;
/// ```
///
/// # Errors
/// [`DriverError`].
pub async fn drive(name: &'static str, network: Network) -> Result<Infallible, DriverError> {
    drive_at(name, network, BAUD).await
}

/// The same, at so many bits in a second. Where the port is only looked at every millisecond, more than the usual number lose bytes.
///
/// # Errors
/// [`DriverError`]: [`NoSpeed`](DriverError::NoSpeed), too.
pub async fn drive_at(name: &'static str, network: Network, baud: u32) -> Result<Infallible, DriverError> {
    let port = Port::open(baud).await?;
    let (link, free) = Link::attach(&network, ethernet::OWN, carry::RECEIVING, carry::SENDING)
        .map_err(|_| DriverError::NoNetwork)?;
    drop(network);
    // What has a name is a mailbox: nobody writes, and whoever asks for its owner finds this process.
    let mut named = ProcessMailbox::<Infallible>::new(1)?;
    let _nothing = named.try_receive();
    registry::register(name, named.address())?;
    Carrier::new(port, link, free)?.run().await
}
