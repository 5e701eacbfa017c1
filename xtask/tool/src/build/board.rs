//! The boards that an image can be built for: one binary each, of the same application.

use super::Workspace;
use clap::ValueEnum;
use std::ffi::OsString;
use std::fmt;

/// A board.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Board {
    /// QEMU's `virt`.
    #[default]
    Virt,
    /// The Raspberry Pi 4, and QEMU's `raspi4b`.
    Rpi4,
}

impl Board {
    /// What cargo needs for it, beside what every build gets.
    pub fn cargo_arguments(self, workspace: &Workspace) -> Vec<OsString> {
        if self == Self::Virt {
            return Vec::new();
        }
        // What both boards share is built once; programs of one name have a folder for each.
        let build = format!("build.build-dir={:?}", workspace.build().display().to_string());
        let target = workspace.target().join("rpi4");
        vec!["--target-dir".into(), target.into(), "--config".into(), build.into()]
    }
}

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Virt => "virt",
            Self::Rpi4 => "rpi4",
        })
    }
}
