//! Wake-up interrupts: a pending flag and a condition variable for each core.
//!
//! The handler runs on the woken core's own thread, when it leaves [`park`], as if the interrupt had
//! been taken there.

#[cfg(not(shuttle))]
use std::sync::{Condvar, Mutex};
#[cfg(not(shuttle))]
use std::time::Duration;

#[cfg(not(shuttle))]
use super::clock;
use super::timer;
#[cfg(not(shuttle))]
use crate::arch::MAX_CORES;
use crate::arch::{CoreId, handlers};

#[cfg(shuttle)]
pub use super::simulated::send;
#[cfg(shuttle)]
use super::simulated::wait;

#[cfg(not(shuttle))]
struct Doorbell {
    pending: Mutex<bool>,
    rung: Condvar,
}

#[cfg(not(shuttle))]
static DOORBELLS: [Doorbell; MAX_CORES] =
    [const { Doorbell { pending: Mutex::new(false), rung: Condvar::new() } }; MAX_CORES];

#[cfg(not(shuttle))]
fn lock(core: CoreId) -> std::sync::MutexGuard<'static, bool> {
    // A panic while the flag is held cannot leave it half changed.
    DOORBELLS[core.index()].pending.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// Sends the wake-up interrupt to `core`.
#[cfg(not(shuttle))]
pub fn send(core: CoreId) {
    *lock(core) = true;
    DOORBELLS[core.index()].rung.notify_all();
}

/// Waits for a wake-up or the timer's deadline; whether it was a wake-up.
#[cfg(not(shuttle))]
fn wait(core: CoreId) -> bool {
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
    core::mem::take(&mut *pending)
}

/// Parks the calling thread, which stands in for `core`, until a wake-up or its timer's deadline.
pub(super) fn park(core: CoreId) {
    let woken = wait(core);
    let Some(table) = handlers::get() else { return };
    if woken {
        (table.wake_up)();
    }
    if timer::expire(core) {
        (table.timer)();
    }
}
