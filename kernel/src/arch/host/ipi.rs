//! Wake-up interrupts: a pending flag and a condition variable for each core.
//!
//! The handler runs on the woken core's own thread, when it leaves [`park`], as if the interrupt had
//! been taken there.

use std::sync::{Condvar, Mutex};
use std::time::Duration;

use super::{clock, timer};
use crate::arch::{CoreId, MAX_CORES, handlers};

struct Doorbell {
    pending: Mutex<bool>,
    rung: Condvar,
}

static DOORBELLS: [Doorbell; MAX_CORES] =
    [const { Doorbell { pending: Mutex::new(false), rung: Condvar::new() } }; MAX_CORES];

fn lock(core: CoreId) -> std::sync::MutexGuard<'static, bool> {
    // A panic while the flag is held cannot leave it half changed.
    DOORBELLS[core.index()].pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sends the wake-up interrupt to `core`.
pub fn send(core: CoreId) {
    *lock(core) = true;
    DOORBELLS[core.index()].rung.notify_all();
}

/// Parks the calling thread, which stands in for `core`, until a wake-up or its timer's deadline.
pub(super) fn park(core: CoreId) {
    let mut pending = lock(core);
    while !*pending {
        let Some(deadline) = timer::deadline(core) else {
            pending =
                DOORBELLS[core.index()].rung.wait(pending).unwrap_or_else(std::sync::PoisonError::into_inner);
            continue;
        };
        let now = clock::now();
        if deadline <= now {
            break;
        }
        (pending, _) = DOORBELLS[core.index()]
            .rung
            .wait_timeout(pending, Duration::from_nanos(deadline - now))
            .unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    let woken = core::mem::take(&mut *pending);
    drop(pending);
    let Some(table) = handlers::get() else { return };
    if woken {
        (table.wake_up)();
    }
    if timer::expire(core) {
        (table.timer)();
    }
}
