//! Commands over the serial line: looking at the scheduler and changing its settings while the system runs.
//!
//! They are there when the boot argument `commands` asks for them. A line arrives byte by byte (`line.rs`), is understood
//! ([`command`]) and carried out ([`carry_out`]) by one process; [`listen`] is that process and the interrupt that
//! wakes it. The process does not keep the system from having run out of work.

#[cfg(target_os = "none")]
mod carry_out;
mod command;
#[cfg(test)]
mod fuzz;
mod line;
#[cfg(target_os = "none")]
pub(crate) mod listen;
