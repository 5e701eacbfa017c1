//! The boards that an image can be built for: one binary each, of the same application.

use clap::ValueEnum;
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
    pub fn cargo_arguments(self) -> &'static [&'static str] {
        match self {
            Self::Virt => &[],
            // What both boards share is built once; programs of one name have a folder for each.
            Self::Rpi4 => &["--target-dir", "target/rpi4", "--config", "build.build-dir=\"target\""],
        }
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
