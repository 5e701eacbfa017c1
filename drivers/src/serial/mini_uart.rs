//! The mini UART of the Raspberry Pi 4 (BCM2711 ARM Peripherals, 2.2): its registers. On a board its only pins are the console's; QEMU's `raspi4b` has its second serial port there.

use magpie::device::Registers;

use super::port::{Come, Uart};
use crate::DriverError;

const DATA: usize = 0x00;
const INTERRUPT_MASK: usize = 0x04;
const QUEUES: usize = 0x08;
const LINE: usize = 0x0c;
const LINE_STATUS: usize = 0x14;
const CONTROL: usize = 0x20;
const BAUD: usize = 0x28;
// In `INTERRUPT_MASK`: without the last two none comes for what is received.
const HAS_COME: u32 = 1 << 0;
const HAS_ROOM: u32 = 1 << 1;
const RECEIVE_TOO: u32 = 0b11 << 2;
// In `LINE_STATUS`.
const READY: u32 = 1 << 0;
const OVERRUN: u32 = 1 << 1;
const ROOM: u32 = 1 << 5;
const EMPTIED: u32 = 0b11 << 1;
const EIGHT_BITS: u32 = 0b11;
const BOTH_WAYS: u32 = 0b11;

pub(super) static UART: Uart = Uart { set_up, receive, send, ask, quiet };

fn set_up(registers: &Registers, clock_hertz: u32, baud: u32) -> Result<(), DriverError> {
    let divisor = divisor(clock_hertz, baud).ok_or(DriverError::NoSpeed(baud))?;
    registers.write_u32(CONTROL, 0);
    registers.write_u32(INTERRUPT_MASK, 0);
    registers.write_u32(LINE, EIGHT_BITS);
    registers.write_u32(QUEUES, EMPTIED);
    registers.write_u32(BAUD, divisor);
    registers.write_u32(CONTROL, BOTH_WAYS);
    Ok(())
}

/// One less than what an eighth of the clock is divided by.
fn divisor(clock_hertz: u32, baud: u32) -> Option<u32> {
    let (clock, baud) = (u64::from(clock_hertz), u64::from(baud));
    let divisor = (clock + baud * 4).checked_div(baud * 8)?;
    (1..=0x1_0000).contains(&divisor).then(|| divisor as u32 - 1)
}

fn receive(registers: &Registers) -> Option<Come> {
    let status = registers.read_u32(LINE_STATUS);
    if status & OVERRUN != 0 {
        // Read, it is cleared; what is in the queue is read next.
        return Some(Come::Garbled);
    }
    (status & READY != 0).then(|| Come::Byte(registers.read_u32(DATA) as u8))
}

fn send(registers: &Registers, byte: u8) -> bool {
    let has_room = registers.read_u32(LINE_STATUS) & ROOM != 0;
    if has_room {
        registers.write_u32(DATA, u32::from(byte));
    }
    has_room
}

fn ask(registers: &Registers, what_comes: bool, room: bool) {
    let come = if what_comes { HAS_COME } else { 0 };
    let room = if room { HAS_ROOM } else { 0 };
    registers.write_u32(INTERRUPT_MASK, come | room | RECEIVE_TOO);
}

fn quiet(registers: &Registers) {
    registers.write_u32(INTERRUPT_MASK, 0);
    registers.write_u32(CONTROL, 0);
}

#[cfg(test)]
mod tests {
    use super::divisor;

    #[test]
    fn speeds_are_met_or_refused() {
        // The manual's formula: 500 MHz / (8 * (542 + 1)) is 115,101.
        assert_eq!(divisor(500_000_000, 115_200), Some(542));
        assert_eq!(
            (divisor(500_000_000, 0), divisor(500_000_000, 200_000_000), divisor(0, 9600)),
            (None, None, None)
        );
    }
}
