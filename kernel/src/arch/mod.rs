//! The machine, behind one interface with two back ends.
//!
//! - `aarch64/`: the real thing; the only place with assembly and system registers.
//! - `host/`: std threads stand in for cores, so the same kernel runs under loom, miri, ThreadSanitizer
//!   and as an ordinary program.
//! - `portable/`: the lock-free primitives over `core::sync::atomic`, used by the host and, with the
//!   feature `portable`, on AArch64 in place of the hand-written exclusives.
//!
//! Nothing here decides policy. The machine calls upwards only through [`handlers`].

pub mod atomic;
mod core_id;
pub mod handlers;

#[cfg(target_os = "none")]
mod aarch64;
#[cfg(target_os = "none")]
pub use aarch64::{barrier, clock, cpu, ipi, irq, percpu, switch, timer};

#[cfg(not(target_os = "none"))]
mod host;
#[cfg(not(target_os = "none"))]
pub use host::{barrier, clock, cpu, ipi, irq, percpu, switch, timer};

pub use core_id::{CoreId, MAX_CORES};
