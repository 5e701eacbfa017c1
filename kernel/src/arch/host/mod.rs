//! The host back end: a core is a std thread, sleeping is a condition variable, nothing is preempted.
//!
//! The signatures are those of `aarch64/`; the tests of everything above `arch/` run on both.

pub mod append;
pub mod backtrace;
pub mod barrier;
pub mod clock;
pub mod copy;
pub mod cpu;
pub mod gic;
pub mod ipi;
pub mod irq;
pub mod locked_append;
pub mod percpu;
pub mod random;
pub mod switch;
pub mod timer;
#[cfg(not(shuttle))]
pub mod virtual_time;
pub mod zero;

// How a thread sleeps and is woken, and what time it is.
#[cfg(not(shuttle))]
#[path = "real.rs"]
mod world;
#[cfg(shuttle)]
#[path = "simulated.rs"]
mod world;
