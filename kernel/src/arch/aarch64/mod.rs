//! The AArch64 back end: the only room with assembly and system registers.
//!
//! Code runs at EL1 with SP_EL1. `TPIDR_EL1` holds the core's block, `TPIDR_EL0` the block of the stack that
//! runs, `SP_EL0` the top of the core's stacks for exceptions; `TPIDRRO_EL0` is scratch in the vectors. `SP_EL0` has what is read
//! seldom, because the emulator asks at each read of it whether it may be read: a search in a table.

pub mod append;
pub mod backtrace;
pub mod barrier;
pub mod clock;
pub mod copy;
pub mod cpu;
pub mod exceptions;
mod frame;
pub mod gic;
pub mod image;
pub mod ipi;
pub mod irq;
pub mod locked_append;
pub mod mmu;
pub mod percpu;
pub mod psci;
pub mod random;
pub mod second_timer;
pub mod start;
pub mod switch;
pub mod timer;
mod vectors;
pub mod zero;
