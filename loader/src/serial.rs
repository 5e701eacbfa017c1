//! The PL011 on pins 14 and 15, polled. Its clock is what our `config.txt` sets.

const PL011: usize = 0xfe20_1000;
const DATA: usize = PL011;
const FLAGS: usize = PL011 + 0x18;
const WHOLE_DIVISOR: usize = PL011 + 0x24;
const FRACTION_DIVISOR: usize = PL011 + 0x28;
const LINE: usize = PL011 + 0x2c;
const CONTROL: usize = PL011 + 0x30;
const BUSY: u32 = 1 << 3;
const RECEIVE_EMPTY: u32 = 1 << 4;
const TRANSMIT_FULL: u32 = 1 << 5;
/// Three bits for each of the pins 10 to 19.
const FUNCTION_SELECT_1: usize = 0xfe20_0004;
const ALTERNATE_0: u32 = 0b100;

fn read(register: usize) -> u32 {
    // SAFETY: a register of the board's; nothing is mapped, so its address is the physical one.
    unsafe { core::ptr::with_exposed_provenance::<u32>(register).read_volatile() }
}

fn write(register: usize, value: u32) {
    // SAFETY: as in `read`.
    unsafe { core::ptr::with_exposed_provenance_mut::<u32>(register).write_volatile(value) }
}

/// 115,200 bits a second from 48 MHz, eight bits, with queues.
pub fn set_up() {
    write(FUNCTION_SELECT_1, read(FUNCTION_SELECT_1) & !(0o77 << 12) | ALTERNATE_0 << 12 | ALTERNATE_0 << 15);
    write(CONTROL, 0);
    write(WHOLE_DIVISOR, 26);
    write(FRACTION_DIVISOR, 3);
    write(LINE, 0b111 << 4);
    write(CONTROL, 0b11 << 8 | 1);
}

/// Sends a byte.
fn send(byte: u8) {
    while read(FLAGS) & TRANSMIT_FULL != 0 {
        core::hint::spin_loop();
    }
    write(DATA, u32::from(byte));
}

/// Sends a text.
pub fn say(text: &str) {
    text.bytes().for_each(send);
}

/// Waits until everything has left the board.
pub fn drain() {
    while read(FLAGS) & BUSY != 0 {
        core::hint::spin_loop();
    }
}

/// The next byte, if one has come.
pub fn poll() -> Option<u8> {
    (read(FLAGS) & RECEIVE_EMPTY == 0).then(|| read(DATA) as u8)
}
