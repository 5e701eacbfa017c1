//! Virtual time: the clock stands still while anything runs, and goes on to the next timer when every core sleeps. For tests
//! on the developer's machine, in which a sleep of an hour takes no time, and whether a time limit is kept does not depend on
//! how busy that machine is.
//!
//! Reading the clock advances it by a nanosecond, so whoever waits in a loop for a moment gets there.
//!
//! One lock guards who sleeps and who was woken. A core's deadline is written by its own thread before that takes the lock to
//! sleep, so who finds all cores asleep sees all deadlines. The atomics are the real ones: this belongs to the machine.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::timer;
use crate::arch::{CoreId, MAX_CORES};

static IS_ON: AtomicBool = AtomicBool::new(false);
static NOW: AtomicU64 = AtomicU64::new(1);

/// Masks of cores.
struct Cores {
    all: u64,
    asleep: u64,
    woken: u64,
}

static CORES: Mutex<Cores> = Mutex::new(Cores { all: 0, asleep: 0, woken: 0 });
static CHANGED: Condvar = Condvar::new();

fn lock() -> MutexGuard<'static, Cores> {
    // No panic is possible while it is held.
    CORES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Time is virtual from now on. To be called before anybody has read the clock, or it goes back, and before any core runs.
pub fn turn_on() {
    // Relaxed: before the threads that read it are started.
    IS_ON.store(true, Ordering::Relaxed);
}

/// Whether time is virtual.
pub fn is_on() -> bool {
    // Relaxed: as above.
    IS_ON.load(Ordering::Relaxed)
}

/// Nanoseconds since the beginning.
pub(super) fn now() -> u64 {
    // Relaxed: whoever is woken by another core has taken the lock after it.
    NOW.fetch_add(1, Ordering::Relaxed) + 1
}

/// A core takes part from now on.
pub(super) fn join(core: CoreId) {
    lock().all |= core.mask();
}

/// Sends the wake-up interrupt to `core`.
pub(super) fn send(core: CoreId) {
    lock().woken |= core.mask();
    CHANGED.notify_all();
}

/// Waits for a wake-up or the timer's deadline.
pub(super) fn wait(core: CoreId) {
    let mut cores = lock();
    cores.asleep |= core.mask();
    loop {
        if cores.woken & core.mask() != 0 {
            cores.woken &= !core.mask();
            break;
        }
        if is_due(core) {
            break;
        }
        if !goes_on(&cores) {
            cores = CHANGED.wait(cores).unwrap_or_else(PoisonError::into_inner);
        }
    }
    cores.asleep &= !core.mask();
}

fn is_due(core: CoreId) -> bool {
    timer::deadline(core).is_some_and(|deadline| deadline <= NOW.load(Ordering::Relaxed))
}

/// If all cores sleep, and none is about to wake, the time goes on to the first deadline. Whether it has.
fn goes_on(cores: &Cores) -> bool {
    let all = || (0..MAX_CORES).filter_map(CoreId::new).filter(|core| cores.all & core.mask() != 0);
    if cores.asleep & cores.all != cores.all || cores.woken & cores.all != 0 {
        return false;
    }
    if all().any(is_due) {
        // Whoever read the clock has moved it past that one's deadline, which it does not know.
        CHANGED.notify_all();
        return false;
    }
    let Some(first) = all().filter_map(timer::deadline).min() else { return false };
    NOW.fetch_max(first, Ordering::Relaxed);
    CHANGED.notify_all();
    true
}
