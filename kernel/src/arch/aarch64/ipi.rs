//! Wake-up interrupts.

use super::gic;
use crate::arch::CoreId;

/// Sends the wake-up interrupt to `core`. What was made visible before is visible when it arrives.
pub fn send(core: CoreId) {
    gic::send_wake_up(core);
}
