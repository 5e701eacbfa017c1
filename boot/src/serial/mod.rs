//! The serial line's input. What the kernel writes there is in `pl011.rs` and in the kernel's `log`.

mod input;
#[cfg(target_os = "none")]
pub(crate) mod port;

pub use input::{Arrived, Input, NoInput};
