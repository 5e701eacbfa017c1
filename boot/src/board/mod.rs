//! Boards: what cannot be read from the device tree, as plain data.
//!
//! | board | first serial port, before the tree is read | semihosting |
//! |---|---|---|
//! | QEMU `virt` | PL011 at 0x0900_0000 | yes |

mod virt;

/// One board.
pub(crate) struct Board {
    /// Its name, as the host tool knows it.
    pub name: &'static str,
    /// The PL011 that is used until the device tree says otherwise, for what goes wrong before that.
    pub early_uart: usize,
    /// Whether the exit status can be handed to an emulator.
    pub semihosting: bool,
}

/// The board this image is for.
pub(crate) fn this() -> &'static Board {
    &virt::BOARD
}

/// Whether the exit status can be handed to an emulator.
pub(crate) fn has_semihosting() -> bool {
    this().semihosting
}
