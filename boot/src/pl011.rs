//! The PL011 serial port (Arm DDI 0183): output only, waiting for room.

use core::sync::atomic::{AtomicUsize, Ordering};

use magpie::log::console::Sink;

const DATA: usize = 0x00;
const FLAGS: usize = 0x18;
const CONTROL: usize = 0x30;
const TRANSMIT_FULL: u32 = 1 << 5;
const BUSY: u32 = 1 << 3;
const ENABLED_FOR_OUTPUT: u32 = 1 << 8 | 1;

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
