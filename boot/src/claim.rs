//! Devices' interrupts, as they arrive: an application's by `magpie::interrupt`, the serial port's, and one that each core has of its own, for
//! the kernel's tests and figures.

use spin::Once;

static CLAIMED: Once<(u32, fn())> = Once::new();

/// From now on `handler` is called for this interrupt, in its handler, on the core that takes it. It must quieten the device. Whether the
/// claim was the first, or is the same again.
pub fn claim(interrupt: u32, handler: fn()) -> bool {
    CLAIMED.call_once(|| (interrupt, handler)).0 == interrupt
}

/// A device's interrupt.
pub(crate) fn on_interrupt(number: u32) {
    match CLAIMED.get() {
        Some((claimed, handler)) if *claimed == number => handler(),
        _ if magpie::internals::interrupt::on_interrupt(number) => {}
        _ => crate::serial::port::on_interrupt(number),
    }
}
