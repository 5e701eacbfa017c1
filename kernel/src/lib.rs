//! Magpie: a bare-metal actor kernel for multicore 64-bit Arm.
//!
//! The rooms, ground floor first; each uses only rooms above it in this list.
//! `docs/architecture.md` has the contracts between them.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod arch;
pub mod sync;

pub mod deque;

pub mod actor;
#[cfg(feature = "checks")]
pub mod checks;
pub mod log;
pub mod machine;
pub mod mem;
mod mutant;
pub mod process_mailbox;
pub mod sched;
pub mod stats;
pub mod time;
