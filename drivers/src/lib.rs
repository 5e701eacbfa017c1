//! Drivers: processes that own a device, above the kernel and below applications.
//!
//! A driver finds its device in the device tree, claims its registers and its interrupt, and serves others by messages. It may crash, or be
//! killed: its device is quiet at once, whoever waits for it is told, and a supervisor starts it anew.
//!
//! - [`entropy`](mod@entropy): random numbers of the machine, and feeding the pool of `magpie_random` from them.
//! - [`block`](mod@block): disks.
//! - [`card`](mod@card): network cards.
//! - [`serial`](mod@serial): the network over a serial line.
//! - [`uplink`](mod@uplink): the one or the other, as the boot arguments say.
//! - [`console`](mod@console): a line to the machine's owner, beside the serial one.
//! - [`journal`](mod@journal): entries on a disk that are there again after a restart, whenever the power has failed.
//! - [`fat`](mod@fat): files on a disk, for exchange with other computers.
//! - [`pi`](mod@pi): what the Raspberry Pi 4 has.
//!
//! All but `serial` and `pi` drive devices of [virtio](https://docs.oasis-open.org/virtio/virtio/v1.3/virtio-v1.3.html), by memory-mapped registers, of the legacy and the
//! modern kind. The queues are those of the crate `virtio-drivers`; what is in `virtio` puts memory of Magpie's under them, and believes a device nothing.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod block;
pub mod card;
pub mod console;
pub mod entropy;
mod error;
pub mod fat;
pub mod journal;
pub mod pi;
mod race;
pub mod serial;
pub mod uplink;
mod virtio;

/// For the tests of the drivers themselves.
#[cfg(feature = "checks")]
#[doc(hidden)]
pub use virtio::{lying, misled};

pub use error::DriverError;
