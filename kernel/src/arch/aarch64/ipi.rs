//! Interrupts from one core to another.

use super::gic;
use crate::arch::CoreId;

/// Sends the wake-up interrupt to `core`. What was made visible before is visible when it arrives.
pub fn send(core: CoreId) {
    #[cfg(feature = "forced-failure")]
    crate::arch::forced_failure::linger();
    gic::send_wake_up(core);
}

/// Takes back what was sent to this core by [`send`] and has not interrupted it. When this returns, whatever was made visible before what it has
/// taken back is seen. Who calls it sends itself another one later, because it does not know what was meant.
pub fn take_back() {
    gic::take_back_wake_up();
}

/// Sends the interrupt that stops `core` for good.
pub fn stop(core: CoreId) {
    gic::send_stop(core);
}
