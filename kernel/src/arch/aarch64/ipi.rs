//! Interrupts from one core to another.

use super::gic;
use crate::arch::CoreId;

/// Sends the wake-up interrupt to `core`. What was made visible before is visible when it arrives.
pub fn send(core: CoreId) {
    #[cfg(feature = "forced-failure")]
    crate::arch::forced_failure::linger();
    gic::send_wake_up(core);
}

/// Sends the interrupt that stops `core` for good.
pub fn stop(core: CoreId) {
    gic::send_stop(core);
}
