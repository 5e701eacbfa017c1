//! Boards: what cannot be read from the device tree, as plain data and a few functions.
//!
//! | board | first serial port, before the tree is read | exit status | end without an emulator | watchdog |
//! |---|---|---|---|---|
//! | QEMU `virt` | PL011 at 0x0900_0000 | semihosting | power-off by the firmware | none |
//! | Raspberry Pi 4 (feature `rpi4`), QEMU `raspi4b` | PL011 at 0xFE20_1000 | semihosting if a boot argument allows it | halt, reset or power-off, as a boot argument says | the power manager's, on the board itself |

mod misplaced;
#[cfg(feature = "rpi4")]
mod rpi4;
#[cfg(not(feature = "rpi4"))]
mod virt;

use crate::memory::Range;

/// One board.
pub(crate) struct Board {
    /// Its name, as the host tool knows it.
    pub name: &'static str,
    /// The PL011 that is used until the device tree says otherwise, for what goes wrong before that.
    pub early_uart: usize,
    /// Whether the device tree's choice of a serial port counts. Otherwise the early one stays the console.
    pub uart_from_tree: bool,
    /// The interrupt of that port, where the device tree's choice does not count.
    pub uart_interrupt: Option<u32>,
    /// Device registers that are used before the tree is read, whole pages.
    pub early_devices: &'static [Range],
    /// Those that boot and the kernel go on using, whole pages, beside the port and what they use of the tree: no driver can have them.
    pub kept: &'static [Range],
    /// Makes the early port usable, once its registers are mapped.
    pub prepare: fn(),
    /// Whether the exit status can be handed to an emulator, according to the boot arguments.
    pub semihosting: fn() -> bool,
    /// What to do at the end if it cannot.
    pub end: fn() -> !,
    /// Starts the machine again; returns if it cannot.
    pub restart: fn(),
    /// What tells the hardware's watchdog that all is well, or that it is not needed any more; `None` if there is none. It waits for
    /// twice as long as the kernel's looks are apart at most.
    pub watchdog: fn() -> Option<TellWatchdog>,
}

/// Whether all is well.
pub(crate) type TellWatchdog = fn(bool);

/// The board this image is for.
pub(crate) fn this() -> &'static Board {
    #[cfg(feature = "rpi4")]
    return &rpi4::BOARD;
    #[cfg(not(feature = "rpi4"))]
    return &virt::BOARD;
}
