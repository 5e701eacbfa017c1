//! Receiving a kernel: the loader's half of the protocol.

use core::arch::asm;

use crate::crc::Crc;
use crate::entry::clean;
use crate::serial::{poll, say, send, set_up};

/// Where the kernel goes.
pub const KERNEL: usize = 0x20_0000;
/// Up to the loader's own place.
const MOST_BYTES: usize = 0x380_0000 - KERNEL;
const MAGIC: [u8; 4] = *b"MGPL";
const CHUNK_BYTES: usize = 4096;
const TAKEN: u8 = 0x06;
const AGAIN: u8 = 0x15;

/// Ticks of the counter in a second.
fn frequency() -> u64 {
    let hertz: u64;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags)) };
    hertz
}

fn now() -> u64 {
    let ticks: u64;
    // SAFETY: reads a register.
    unsafe { asm!("isb", "mrs {}, cntpct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags)) };
    ticks
}

/// The next byte, unless none comes for `seconds`.
fn byte(seconds: u64) -> Option<u8> {
    let end = now() + seconds * frequency();
    loop {
        if let Some(byte) = poll() {
            return Some(byte);
        }
        if now() > end {
            return None;
        }
    }
}

fn word() -> Option<u32> {
    let mut word = 0;
    for shift in [0, 8, 16, 24] {
        word |= u32::from(byte(5)?) << shift;
    }
    Some(word)
}

/// Says that it is ready until a header comes. Its length and checksum.
fn header() -> Option<(usize, u32)> {
    let mut matched = 0;
    while matched < MAGIC.len() {
        match byte(1) {
            Some(byte) if byte == MAGIC[matched] => matched += 1,
            Some(byte) => matched = usize::from(byte == MAGIC[0]),
            None => {
                matched = 0;
                say("@loader ready\n");
            }
        }
    }
    Some((word()? as usize, word()?))
}

/// Writes a byte of the kernel.
fn put(offset: usize, byte: u8) {
    let place = core::ptr::with_exposed_provenance_mut::<u8>(KERNEL + offset);
    // SAFETY: below the loader's own place, checked against `MOST_BYTES`; nobody else uses that memory.
    unsafe { place.write_volatile(byte) };
}

/// Receives one chunk at `offset`. Whether it is whole.
fn chunk(offset: usize, bytes: usize) -> Option<bool> {
    let mut sum = Crc::new();
    for index in 0..bytes {
        let byte = byte(5)?;
        put(offset + index, byte);
        sum.add(byte);
    }
    Some(word()? == sum.value())
}

/// Receives a kernel into its place, however often that takes. Returns its length.
pub fn kernel() -> usize {
    set_up();
    say("@loader ready\n");
    loop {
        match attempt() {
            Some(Some(bytes)) => {
                say("@loader go\n");
                return bytes;
            }
            Some(None) => {}
            None => say("@loader no more bytes came; once more\n"),
        }
    }
}

/// The length of the kernel that came, if it is whole.
fn attempt() -> Option<Option<usize>> {
    let (length, whole) = header()?;
    if length == 0 || length > MOST_BYTES {
        say("@loader takes kernels up to 54 MiB\n");
        return Some(None);
    }
    clean(KERNEL, length);
    say("@loader take\n");
    let mut done = 0;
    while done < length {
        let bytes = (length - done).min(CHUNK_BYTES);
        if chunk(done, bytes)? {
            send(TAKEN);
            done += bytes;
        } else {
            send(AGAIN);
        }
    }
    let mut sum = Crc::new();
    for offset in 0..length {
        // SAFETY: written above.
        sum.add(unsafe { core::ptr::with_exposed_provenance::<u8>(KERNEL + offset).read_volatile() });
    }
    let good = sum.value() == whole;
    if !good {
        say("@loader has a kernel that differs from what was sent\n");
    }
    Some(good.then_some(length))
}
