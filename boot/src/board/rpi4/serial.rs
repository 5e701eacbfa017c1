//! The serial port on pins 14 and 15: the PL011, which the firmware may have given to Bluetooth.

use super::property;
use crate::baud::{self, Divisor};
use crate::pl011;

/// The port.
pub(super) const PL011: usize = 0xfe20_1000;

/// Its interrupt: number 121 of those that the cores share, which begin at 32.
pub(super) const PL011_INTERRUPT: u32 = 32 + 121;

const GPIO: usize = 0xfe20_0000;
/// Three bits for each of the pins 10 to 19.
const FUNCTION_SELECT_1: usize = GPIO + 0x04;
/// Two bits for each of the pins 0 to 15.
const PULLS_0: usize = GPIO + 0xe4;
const ALTERNATE_0: u32 = 0b100;
const PULL_UP: u32 = 0b01;
/// What `init_uart_clock` in our `config.txt` asks for, where the firmware does not answer.
const CONFIGURED_CLOCK_HERTZ: u32 = 48_000_000;

fn change(register: usize, change: impl FnOnce(u32) -> u32) {
    let register = core::ptr::with_exposed_provenance_mut::<u32>(register);
    // SAFETY: a register of the board, mapped before this is used; other cores do not run yet.
    unsafe { register.write_volatile(change(register.read_volatile())) };
}

/// Gives the port its pins and its speed.
pub(super) fn prepare() {
    // Pins 14 and 15: transmit and receive. The receiving one must not float when nothing is plugged in.
    change(FUNCTION_SELECT_1, |bits| bits & !(0o77 << 12) | ALTERNATE_0 << 12 | ALTERNATE_0 << 15);
    change(PULLS_0, |bits| bits & !(0b1111 << 28) | PULL_UP << 30);
    let clock = property::uart_clock().unwrap_or(CONFIGURED_CLOCK_HERTZ);
    let divisor = baud::divisor(clock, baud::BAUD)
        // A clock too slow for the speed was not what was asked for; the configured one is the best guess.
        .or_else(|| baud::divisor(CONFIGURED_CLOCK_HERTZ, baud::BAUD))
        .unwrap_or(Divisor { whole: 26, fraction: 3 });
    // SAFETY: the board's port, mapped by now, and nobody else uses it yet.
    unsafe { pl011::set_up(PL011, divisor) };
}
