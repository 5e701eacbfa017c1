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
            // Memory begins at 0. A folder of its own, for the other link arguments would build all anew.
            Self::Rpi4 => &[
                "--features",
                "magpie-boot/rpi4",
                "--config",
                "target.aarch64-unknown-none.rustflags=[\"-Clink-arg=--defsym=MAGPIE_RAM=0\"]",
                "--target-dir",
                "target/rpi4",
            ],
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
