//! Magpie: a bare-metal actor kernel for multicore 64-bit Arm.
//!
//! This is what an application uses, and all of it: the kernel's public rooms, the macro that makes an image of an
//! application, and a [prelude]. Nothing is defined here but names; the rooms are in the crates `magpie-kernel` and
//! `magpie-boot`.
//!
//! ```
//! use magpie::prelude::*;
//!
//! magpie::entry!(application);
//!
//! async fn application() -> Result<(), SpawnError> {
//!     let answer = sched::spawn(async { 6 * 7 })?;
//!     if let Ok(number) = answer.await {
//!         text!("{number}");
//!     }
//!     Ok(())
//! }
//! ```
//!
//! What runs: [`sched`], processes; [`actor`], state that handles messages; [`channel`], processes that receive messages;
//! [`supervise`], processes that start others anew. What they use: [`time`], [`mutex`], and [`mem`] where memory may run out. What they can know: [`machine`], the boot
//! arguments and the host's input; [`arch`], numbers and sets of cores; [`stats`], what was counted; [`crash`], what has crashed. What they say: [`log`],
//! [`text!`] for a line, and [`trace`] for marks in a picture of the run. On the developer's machine there is `testing` besides: tests of one's own actors.
#![cfg_attr(target_os = "none", no_std)]

#[cfg(doctest)]
mod hidden;
pub mod prelude;

#[cfg(not(target_os = "none"))]
pub use kernel::testing;
pub use kernel::{
    actor, arch, channel, crash, group, interrupt, log, machine, mem, message, mutex, registry, sched, stats,
    supervise, text, time, trace, watch,
};

/// Devices: where they are, by the device tree; their registers; and memory that they share.
///
/// ```
/// use magpie::device;
///
/// // What a machine has. On the host that is nothing.
/// for device in device::find("virtio,mmio") {
///     magpie::log::text!("{} at {:#x?}", device.name(), device.registers(0));
/// }
/// assert_eq!(device::all().count(), 0);
/// ```
pub mod device {
    pub use kernel::device::{ClaimError, DMA_PAGE_BYTES, DmaMemory, Registers};
    pub use magpie_boot::tree::{Device, NoLine, all, find, random_seed};
}
pub use magpie_boot::{ExitCode, Termination, entry, serial};

extern crate alloc;

/// What an application's functions may return: any error can be passed on with `?`, and `main` says it.
pub type Result<T = (), E = alloc::boxed::Box<dyn core::error::Error + Send + Sync>> =
    core::result::Result<T, E>;
