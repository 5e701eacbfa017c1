//! Sleeping, waking and time as the developer's machine has them: a pending flag and a condition variable for each core, and
//! the system's clock; or a clock of the tests' own (`virtual_time.rs`). The same functions for a simulation are in
//! `simulated.rs`.

use std::sync::{Condvar, Mutex, OnceLock};
use std::time::{Duration, Instant};

use super::{timer, virtual_time};
use crate::arch::{CoreId, MAX_CORES};

/// A core takes part from now on.
pub(super) fn join(core: CoreId) {
    virtual_time::join(core);
}

/// Nanoseconds since the first call.
pub fn now() -> u64 {
    if virtual_time::is_on() {
        return virtual_time::now();
    }
    static START: OnceLock<Instant> = OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

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
    if virtual_time::is_on() {
        return virtual_time::send(core);
    }
    *lock(core) = true;
    DOORBELLS[core.index()].rung.notify_all();
}

/// Waits for a wake-up or the timer's deadline.
pub(super) fn wait(core: CoreId) {
    if virtual_time::is_on() {
        return virtual_time::wait(core);
    }
    let mut pending = lock(core);
    while !*pending {
        let Some(deadline) = timer::deadline(core) else {
            pending =
                DOORBELLS[core.index()].rung.wait(pending).unwrap_or_else(std::sync::PoisonError::into_inner);
            continue;
        };
        let now = now();
        if deadline <= now {
            break;
        }
        (pending, _) = DOORBELLS[core.index()]
            .rung
            .wait_timeout(pending, Duration::from_nanos(deadline - now))
            .unwrap_or_else(std::sync::PoisonError::into_inner);
    }
    *pending = false;
}
