//! The Raspberry Pi 4 (BCM2711), in its low-peripheral mode, and QEMU's `raspi4b`.
//!
//! Memory, cores, interrupt controller and timer come from the device tree. What is here is what the firmware
//! leaves to us: the serial port's pins and speed, and how to switch off.

mod power;
mod property;
mod serial;

use magpie::machine;

use super::Board;
use crate::memory::Range;

magpie::memory_begins_at!(0);

/// GPIO, mailbox, serial port and power manager lie in these pages.
const PERIPHERALS: Range = Range { start: 0xfe00_0000, end: 0xfe20_2000 };

pub(super) static BOARD: Board = Board {
    name: "rpi4",
    early_uart: serial::PL011,
    // The tree's first port may be the one for Bluetooth, and its choice for the console the mini UART, whose
    // speed follows the processor's.
    uart_from_tree: false,
    uart_interrupt: Some(serial::PL011_INTERRUPT),
    early_devices: &[PERIPHERALS],
    // Pins and mailbox are used during boot alone.
    kept: &[power::PAGE],
    prepare: serial::prepare,
    // On a real board no debugger listens, and the instruction would fault. So the host tool says when one does; an end
    // that is asked for comes first.
    semihosting: || machine::argument("semihosting").is_some() && machine::argument("end").is_none(),
    end: power::end,
    restart: power::reset,
    // QEMU's power manager does not count: it resets at once.
    watchdog: || machine::argument("semihosting").is_none().then_some(power::tell_watchdog),
};
