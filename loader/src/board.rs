//! The board that a kernel is received on: its clock, its memory, its serial line.

use crate::entry::clean;
use crate::serial::{drain, poll, say, set_up};
use core::arch::asm;
use core::fmt;
use magpie_loader::{Board, Receiver};

/// Where the kernel goes.
pub const KERNEL: usize = 0x20_0000;
/// Up to the loader's own place.
const MOST_BYTES: usize = 0x380_0000 - KERNEL;

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

/// The Raspberry Pi 4.
struct Rpi4;

impl fmt::Write for Rpi4 {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        say(text);
        Ok(())
    }
}

impl Board for Rpi4 {
    const MOST_BYTES: u32 = MOST_BYTES as u32;

    fn prepare(&mut self, bytes: u32) {
        clean(KERNEL, bytes as usize);
    }

    fn put(&mut self, offset: u32, byte: u8) {
        let place = core::ptr::with_exposed_provenance_mut::<u8>(KERNEL + offset as usize);
        // SAFETY: below the loader's own place: the receiver takes no kernel above `MOST_BYTES`; nobody else uses that
        // memory.
        unsafe { place.write_volatile(byte) };
    }

    fn get(&mut self, offset: u32) -> u8 {
        let place = core::ptr::with_exposed_provenance::<u8>(KERNEL + offset as usize);
        // SAFETY: as in `put`, by which it was written.
        unsafe { place.read_volatile() }
    }
}

/// Receives a kernel into its place, however often that takes. Returns its length.
pub fn kernel() -> usize {
    set_up();
    let mut receiver = Receiver::new(frequency());
    receiver.announce(now(), &mut Rpi4);
    loop {
        while let Some(byte) = poll() {
            if let Some(bytes) = receiver.heard(byte, now(), &mut Rpi4) {
                // The kernel sets the port up anew.
                drain();
                return bytes as usize;
            }
        }
        let began = now();
        receiver.tick(began, &mut Rpi4);
        // Less than half a byte's time. An emulator's device does not fill while it is read without a pause.
        while now() - began < frequency() / 25_000 {
            core::hint::spin_loop();
        }
    }
}
