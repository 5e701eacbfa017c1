//! Wake-up interrupts: a core that sleeps is woken by whatever [`world`] its thread is in.
//!
//! The timer's handler runs on the woken core's own thread, when it leaves [`park`], as if the interrupt had
//! been taken there.

use super::{timer, world};
use crate::arch::{CoreId, handlers};

pub use super::world::send;

/// Parks the calling thread, which stands in for `core`, until a wake-up or its timer's deadline.
pub(super) fn park(core: CoreId) {
    world::wait(core);
    if timer::expire(core)
        && let Some(table) = handlers::get()
    {
        (table.timer)();
    }
}
