//! Magpie: a bare-metal actor kernel for multicore 64-bit Arm.
//!
//! The rooms, ground floor first; each uses only rooms above it in this list.
//! `docs/architecture.md` has the contracts between them.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod arch;
pub mod sync;

pub mod deque;

#[cfg(feature = "checks")]
pub mod checks;
mod mutant;

// The rooms below keep atomics in statics, and loom's cannot be made in a constant: its models check what
// stands above, and what these rooms' protocols have been factored into.
#[cfg(not(loom))]
pub mod actor;
#[cfg(not(loom))]
pub mod log;
#[cfg(not(loom))]
pub mod machine;
#[cfg(not(loom))]
pub mod mem;
#[cfg(not(loom))]
pub mod process_mailbox;
#[cfg(not(loom))]
pub mod sched;
#[cfg(not(loom))]
pub mod stats;
#[cfg(not(loom))]
pub mod time;
