//! Magpie: a bare-metal actor kernel for multicore 64-bit Arm.
//!
//! The rooms, ground floor first; each uses only rooms above it in this list.
//! `docs/architecture.md` has the contracts between them.
#![cfg_attr(target_os = "none", no_std)]

extern crate alloc;

pub mod arch;
pub mod sched;
pub mod sync;
