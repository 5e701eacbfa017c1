//! The PL011 serial port (Arm DDI 0183): output that waits for room, and input where somebody listens.

use core::sync::atomic::{AtomicUsize, Ordering};

use magpie::internals::console::Sink;

const DATA: usize = 0x00;
const FLAGS: usize = 0x18;
const CONTROL: usize = 0x30;
const INTERRUPT_MASK: usize = 0x38;
const INTERRUPT_CLEAR: usize = 0x44;
/// Something has arrived; and something has been there for a while, less than what raises the first.
const RECEIVE_INTERRUPTS: u32 = 1 << 6 | 1 << 4;
const RECEIVE_EMPTY: u32 = 1 << 4;
const TRANSMIT_FULL: u32 = 1 << 5;
const BUSY: u32 = 1 << 3;
const ENABLED_FOR_OUTPUT: u32 = 1 << 8 | 1;

#[cfg(feature = "rpi4")]
const WHOLE_DIVISOR: usize = 0x24;
#[cfg(feature = "rpi4")]
const FRACTION_DIVISOR: usize = 0x28;
const LINE: usize = 0x2c;
const QUEUES: u32 = 1 << 4;
/// Eight bits, no parity, one stop bit, with queues.
const EIGHT_BITS: u32 = 0b11 << 5 | QUEUES;
const RECEIVE: u32 = 1 << 9;

/// Sets speed and line of the port at `base`, and switches it on.
///
/// # Safety
/// A PL011 is there, mapped as device memory, and nobody uses it.
#[cfg(feature = "rpi4")]
pub(crate) unsafe fn set_up(base: usize, divisor: crate::baud::Divisor) {
    let port = Pl011 { base: AtomicUsize::new(base) };
    // First what the firmware has written must leave, or it is lost. Then the port is switched off, because the divisor
    // takes effect only then.
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
    /// Sets where the port is, and switches it on, with its queues, if nobody has.
    ///
    /// # Safety
    /// A PL011 is at `base`, mapped as device memory, and its line settings were made by the firmware.
    pub(crate) unsafe fn set_base(&self, base: usize) {
        // Relaxed: set at boot, before other cores run.
        self.base.store(base, Ordering::Relaxed);
        let (control, line) = (self.read(CONTROL), self.read(LINE));
        if line & QUEUES == 0 {
            // Without queues every byte that arrives raises an interrupt. The line is changed only while the port is
            // off.
            self.drain();
            self.write_register(CONTROL, 0);
            self.write_register(LINE, line | EIGHT_BITS);
        }
        self.write_register(CONTROL, control | ENABLED_FOR_OUTPUT);
    }

    // In line, or a line of output is held for longer: this crate is optimised for size.
    #[inline(always)]
    fn read(&self, register: usize) -> u32 {
        let address = self.base.load(Ordering::Relaxed) + register;
        // SAFETY: `set_base` was given a PL011's address.
        unsafe { core::ptr::with_exposed_provenance::<u32>(address).read_volatile() }
    }

    // As above.
    #[inline(always)]
    fn write_register(&self, register: usize, value: u32) {
        let address = self.base.load(Ordering::Relaxed) + register;
        // SAFETY: as in `read`.
        unsafe { core::ptr::with_exposed_provenance_mut::<u32>(address).write_volatile(value) }
    }

    /// Switches the receiver on; its interrupt stays masked.
    pub(crate) fn prepare_receive(&self) {
        self.write_register(INTERRUPT_MASK, 0);
        self.write_register(INTERRUPT_CLEAR, RECEIVE_INTERRUPTS);
        self.write_register(CONTROL, self.read(CONTROL) | RECEIVE);
    }

    /// The next byte that has arrived.
    pub(crate) fn receive(&self) -> Option<u8> {
        // The upper bits report errors on the line. They are ignored, because a damaged command will not be understood.
        (self.read(FLAGS) & RECEIVE_EMPTY == 0).then(|| self.read(DATA) as u8)
    }

    /// Masks the interrupt that says that something arrived.
    pub(crate) fn mask_receive(&self) {
        self.write_register(INTERRUPT_MASK, 0);
    }

    /// Unmasks the interrupt: it is raised when something arrives, or has arrived.
    pub(crate) fn unmask_receive(&self) {
        self.write_register(INTERRUPT_MASK, RECEIVE_INTERRUPTS);
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
