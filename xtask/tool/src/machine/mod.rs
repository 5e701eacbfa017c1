//! The emulated machine: what may be asked of it, QEMU's command line for it, and one run of a guest.

mod attached;
mod debugger;
mod limits;
mod line;
mod lossy;
mod qemu;
mod raspi4b;
mod run;
mod size;

pub use attached::{Attached, Console, Disk, Net};
pub use debugger::{Debugger, write_script};
pub use limits::{Gic, Machine};
pub use qemu::{Guest, Typed, guest_command};
pub use raspi4b::write_tree;
pub use run::{
    Ending, Listener, catch_interrupts, end_with_this_tool, interrupt, interrupted, run, run_while_heard,
};
pub use size::Size;
