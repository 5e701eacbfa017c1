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
    actor, arch, channel, crash, group, log, machine, mem, message, mutex, registry, sched, stats, supervise,
    text, time, trace, watch,
};
pub use magpie_boot::{ExitCode, Termination, entry, serial};

extern crate alloc;

/// What an application's functions may return: any error can be passed on with `?`, and `main` says it.
pub type Result<T = (), E = alloc::boxed::Box<dyn core::error::Error + Send + Sync>> =
    core::result::Result<T, E>;
