//! Boots a Magpie image.
//!
//! From the firmware's jump to the first process: read the device tree ([`tree`]), share out the memory
//! ([`memory`]), turn on the page tables, start the other cores, start the scheduler. Boards live here and
//! nowhere else (`board/`).
//!
//! An application names its main function with [`entry!`]. On the developer's own machine the same macro
//! makes a program that runs the application on threads.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

mod arguments;
pub mod baud;
#[cfg(target_os = "none")]
mod board;
#[cfg(target_os = "none")]
pub mod claim;
#[cfg(any(target_os = "none", test))]
mod commands;
mod entry;
#[cfg(any(target_os = "none", test))]
mod exhaustion;
pub mod exit;
#[cfg(not(target_os = "none"))]
pub mod host;
pub mod memory;
#[cfg(target_os = "none")]
mod panic;
#[cfg(target_os = "none")]
mod pl011;
#[cfg(target_os = "none")]
mod primary;
#[cfg(test)]
mod random;
#[cfg(target_os = "none")]
mod secondary;
pub mod serial;
mod statistics;
#[cfg(feature = "traced")]
mod trace;
pub mod tree;

pub use exit::{ExitCode, Termination};
#[cfg(target_os = "none")]
pub use primary::run_main;
