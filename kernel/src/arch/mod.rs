//! The machine, behind one interface with two back ends.
//!
//! - `aarch64/`: the real thing; the only place with assembly and system registers.
//! - `host/`: std threads stand in for cores, so the same kernel runs under loom, miri, ThreadSanitizer
//!   and as an ordinary program.
//! - `portable/`: the lock-free primitives over `core::sync::atomic`, used by the host and, with the
//!   feature `portable`, on AArch64 in place of the hand-written exclusives.
//!
//! Nothing here decides policy. The machine calls upwards only through `handlers`.

pub(crate) mod atomic;
mod core_id;
#[cfg(feature = "forced-failure")]
pub(crate) mod forced_failure;
pub(crate) mod gate;
pub(crate) mod handlers;
pub(crate) mod outcomes;
#[cfg(any(target_os = "none", test))]
mod page_tables;
#[cfg(target_os = "none")]
pub(crate) mod queue_layout;
pub(crate) mod stack_layout;
mod target;
mod trigger;
#[cfg(any(target_os = "none", test))]
mod unwind_tables;

#[cfg(target_os = "none")]
mod aarch64;
#[cfg(target_os = "none")]
pub(crate) use aarch64::{
    append, backtrace, barrier, clock, copy, cpu, exceptions, gic, image, ipi, irq, locked_append, mmu,
    percpu, psci, random, second_timer, start, switch, timer, zero,
};

#[cfg(not(target_os = "none"))]
mod host;
#[cfg(not(any(target_os = "none", loom, shuttle)))]
pub(crate) use host::virtual_time;
#[cfg(not(target_os = "none"))]
pub(crate) use host::{
    append, backtrace, barrier, clock, copy, cpu, gic, ipi, irq, locked_append, percpu, random, switch,
    timer, zero,
};

// The lock-free primitives: the assembly wherever the machine is an Arm one, unless the feature `portable`
// asks otherwise or a checker runs, which cannot see into assembly.
#[cfg(any(not(target_arch = "aarch64"), feature = "portable", loom, shuttle, miri))]
#[path = "portable/mod.rs"]
mod primitives;
#[cfg(not(any(not(target_arch = "aarch64"), feature = "portable", loom, shuttle, miri)))]
#[path = "aarch64/primitives.rs"]
mod primitives;
pub(crate) use primitives::{deque_ops, pair, swap};

pub use core_id::{CoreId, CoreSet, MAX_CORES};
pub(crate) use outcomes::{Full, Steal, SwapOutcome};
pub use trigger::Trigger;
