//! The PL011 serial port (Arm DDI 0183): output only, waiting for room.

use core::sync::atomic::{AtomicUsize, Ordering};

use magpie::log::console::Sink;

const DATA: usize = 0x00;
const FLAGS: usize = 0x18;
const CONTROL: usize = 0x30;
const TRANSMIT_FULL: u32 = 1 << 5;
const BUSY: u32 = 1 << 3;
const ENABLED_FOR_OUTPUT: u32 = 1 << 8 | 1;

#[cfg(feature = "rpi4")]
const WHOLE_DIVISOR: usize = 0x24;
#[cfg(feature = "rpi4")]
const FRACTION_DIVISOR: usize = 0x28;
#[cfg(feature = "rpi4")]
const LINE: usize = 0x2c;
/// Eight bits, no parity, one stop bit, with queues.
#[cfg(feature = "rpi4")]
const EIGHT_BITS: u32 = 0b11 << 5 | 1 << 4;
#[cfg(feature = "rpi4")]
const RECEIVE: u32 = 1 << 9;

/// Sets speed and line of the port at `base`, and switches it on.
///
/// # Safety
/// A PL011 is there, mapped as device memory, and nobody uses it.
#[cfg(feature = "rpi4")]
pub(crate) unsafe fn set_up(base: usize, divisor: crate::baud::Divisor) {
    let port = Pl011 { base: AtomicUsize::new(base) };
    // What the firmware still has to say is lost otherwise. Then off, for the divisor takes effect only so.
    port.drain();
    port.write_register(CONTROL, 0);
    port.write_register(WHOLE_DIVISOR, divisor.whole);
    port.write_register(FRACTION_DIVISOR, divisor.fraction);
    port.write_register(LINE, EIGHT_BITS);
    port.write_register(CONTROL, ENABLED_FOR_OUTPUT | RECEIVE);
}

/// The serial port that the kernel writes to.
pub(crate) struct Pl011 {
    base: AtomicUsize,
}

/// The port; its address is the board's until the device tree names another.
pub(crate) static CONSOLE: Pl011 = Pl011 { base: AtomicUsize::new(0) };

impl Pl011 {
    /// Says where the port is, and switches it on if nobody has.
    ///
    /// # Safety
    /// A PL011 is at `base`, mapped as device memory, and its line settings were made by the firmware.
    pub(crate) unsafe fn set_base(&self, base: usize) {
        // Relaxed: set at boot, before other cores run.
        self.base.store(base, Ordering::Relaxed);
        let control = self.read(CONTROL);
        if control & ENABLED_FOR_OUTPUT != ENABLED_FOR_OUTPUT {
            self.write_register(CONTROL, control | ENABLED_FOR_OUTPUT);
        }
    }

    fn read(&self, register: usize) -> u32 {
        let address = self.base.load(Ordering::Relaxed) + register;
        // SAFETY: `set_base` was given a PL011's address.
        unsafe { core::ptr::with_exposed_provenance::<u32>(address).read_volatile() }
    }

    fn write_register(&self, register: usize, value: u32) {
        let address = self.base.load(Ordering::Relaxed) + register;
        // SAFETY: as in `read`.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(address).write_volatile(value) }
    }

    /// Waits until everything has left.
    pub(crate) fn drain(&self) {
        while self.read(FLAGS) & BUSY != 0 {
            core::hint::spin_loop();
        }
    }
}

impl Sink for Pl011 {
    fn write(&self, bytes: &[u8]) {
        if self.base.load(Ordering::Relaxed) == 0 {
            return;
        }
        for &byte in bytes {
            while self.read(FLAGS) & TRANSMIT_FULL != 0 {
                core::hint::spin_loop();
            }
            self.write_register(DATA, u32::from(byte));
        }
    }
}
