//! Finds out what the machine has, and installs what is missing.
//!
//! Every command that changes the machine is printed before it runs. With `--no-install`, without the right
//! to install, or on a system whose package manager is not driven from here, the exact command is printed
//! instead and the tool stops with status 2.

mod apt;
mod apt_sources;
mod install_qemu;
mod os;
mod program;
mod qemu;
mod rust;
mod shell;

pub use install_qemu::how_to_install;
pub use os::Os;
pub use program::{ready_erlang, ready_gdb};
pub use qemu::{OLDEST_FOR_RASPI4B, OLDEST_FOR_VIRT, Qemu};
pub use rust::{
    Component, TARGET_COMMAND, has_component, has_target, ready_components, ready_rust_analyzer,
    ready_sources, ready_target,
};
pub use shell::{run_shown, shown};

/// Whether this tool may install what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Install {
    /// It may, and prints what it does.
    Allowed,
    /// It only says what is missing.
    Never,
}

impl Install {
    /// From the switch `--no-install`.
    pub fn unless(no_install: bool) -> Self {
        if no_install { Self::Never } else { Self::Allowed }
    }
}
