//! The PL011 serial port (Arm DDI 0183): its registers. Those 2 to 5 of the Raspberry Pi 4 are of this kind, and the second of QEMU's `virt`.

use magpie::device::Registers;

use super::port::{Come, Uart};
use crate::DriverError;

const DATA: usize = 0x00;
const FLAGS: usize = 0x18;
const WHOLE_DIVISOR: usize = 0x24;
const FRACTION_DIVISOR: usize = 0x28;
const LINE: usize = 0x2c;
const CONTROL: usize = 0x30;
const LEVELS: usize = 0x34;
const INTERRUPT_MASK: usize = 0x38;
const INTERRUPT_CLEAR: usize = 0x44;
// In `DATA`: the byte is garbled, or some before it were lost.
const ERRORS: u32 = 0b1111 << 8;
// In `FLAGS`.
const RECEIVE_EMPTY: u32 = 1 << 4;
const TRANSMIT_FULL: u32 = 1 << 5;
/// Eight bits, no parity, one stop bit, with queues.
const EIGHT_BITS: u32 = 0b11 << 5 | 1 << 4;
/// Both ways on.
const ENABLED: u32 = 1 << 9 | 1 << 8 | 1;
/// Interrupts when the one queue is a quarter full, and the other a quarter.
const QUARTERS: u32 = 1 << 3 | 1;
/// There is something, or has been for a while; there is room.
const HAS_COME: u32 = 1 << 4 | 1 << 6;
const HAS_ROOM: u32 = 1 << 5;
const ALL: u32 = 0x7ff;

pub(super) static UART: Uart = Uart { set_up, receive, send, ask, quiet };

fn set_up(registers: &Registers, clock_hertz: u32, baud: u32) -> Result<(), DriverError> {
    let (whole, fraction) = divisor(clock_hertz, baud).ok_or(DriverError::NoSpeed(baud))?;
    // The divisor takes effect when the line is written, and both only while the port is off. Without queues for a moment these are empty.
    registers.write_u32(CONTROL, 0);
    registers.write_u32(INTERRUPT_MASK, 0);
    registers.write_u32(LINE, 0);
    registers.write_u32(WHOLE_DIVISOR, whole);
    registers.write_u32(FRACTION_DIVISOR, fraction);
    registers.write_u32(LINE, EIGHT_BITS);
    registers.write_u32(LEVELS, QUARTERS);
    registers.write_u32(INTERRUPT_CLEAR, ALL);
    registers.write_u32(CONTROL, ENABLED);
    Ok(())
}

/// The clock is divided by a whole and so many sixty-fourths, and 16 of the results make one bit.
fn divisor(clock_hertz: u32, baud: u32) -> Option<(u32, u32)> {
    let (clock, baud) = (u64::from(clock_hertz), u64::from(baud));
    let parts = (clock * 4 + baud / 2).checked_div(baud)?;
    (64..=0xffff * 64).contains(&parts).then_some((parts as u32 / 64, parts as u32 % 64))
}

fn receive(registers: &Registers) -> Option<Come> {
    if registers.read_u32(FLAGS) & RECEIVE_EMPTY != 0 {
        return None;
    }
    let data = registers.read_u32(DATA);
    Some(if data & ERRORS == 0 { Come::Byte(data as u8) } else { Come::Garbled })
}

fn send(registers: &Registers, byte: u8) -> bool {
    let has_room = registers.read_u32(FLAGS) & TRANSMIT_FULL == 0;
    if has_room {
        registers.write_u32(DATA, u32::from(byte));
    }
    has_room
}

fn ask(registers: &Registers, what_comes: bool, room: bool) {
    let come = if what_comes { HAS_COME } else { 0 };
    // It is there since the queue's level fell, or will be when it does: who asks has filled it.
    let room = if room { HAS_ROOM } else { 0 };
    registers.write_u32(INTERRUPT_MASK, come | room);
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
        // The manual's own example (Arm DDI 0183, 3.3.6): 4 MHz at 230,400 is 1 and 5/64.
        assert_eq!(divisor(4_000_000, 230_400), Some((1, 5)));
        assert_eq!(divisor(48_000_000, 115_200), Some((26, 3)));
        assert_eq!(divisor(48_000_000, 3_000_000), Some((1, 0)));
        for (clock, baud) in [(48_000_000, 3_100_000), (48_000_000, 0), (48_000_000, 40), (0, 115_200)] {
            assert_eq!(divisor(clock, baud), None, "{baud}");
        }
    }
}
