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

impl fmt::Display for Board {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Virt => "virt",
            Self::Rpi4 => "rpi4",
        })
    }
}
