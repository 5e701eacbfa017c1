//! Sleeping and waking in a simulation: shuttle runs one thread at a time, chosen by a seed, and time advances only
//! when a thread reads the clock or all of them sleep.
//!
//! The atomics here are the real ones, at which shuttle does not switch threads: sleeping belongs to the machine.

use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::timer;
use crate::arch::{CoreId, MAX_CORES};

static PENDING: [AtomicBool; MAX_CORES] = [const { AtomicBool::new(false) }; MAX_CORES];
static CORES: AtomicU64 = AtomicU64::new(0);
static ASLEEP: AtomicU64 = AtomicU64::new(0);

/// The simulation's time: reading the clock advances it a little, and when every core sleeps it advances to the first
/// timer.
static NOW: AtomicU64 = AtomicU64::new(1);

/// Nanoseconds since the beginning.
pub fn now() -> u64 {
    const LOOK_NANOSECONDS: u64 = 200;
    NOW.fetch_add(LOOK_NANOSECONDS, Ordering::Relaxed)
}

/// A core takes part from now on.
pub(super) fn join(core: CoreId) {
    CORES.fetch_or(core.mask(), Ordering::Relaxed);
}

/// Sends the wake-up interrupt to `core`.
pub fn send(core: CoreId) {
    PENDING[core.index()].store(true, Ordering::Relaxed);
}

/// Waits for a wake-up or the timer's deadline.
pub(super) fn wait(core: CoreId) {
    ASLEEP.fetch_or(core.mask(), Ordering::Relaxed);
    loop {
        if PENDING[core.index()].swap(false, Ordering::Relaxed) {
            break;
        }
        if timer::deadline(core).is_some_and(|deadline| deadline <= now()) {
            break;
        }
        let everyone = CORES.load(Ordering::Relaxed);
        let all_sleep = ASLEEP.load(Ordering::Relaxed) & everyone == everyone;
        let cores = || (0..MAX_CORES).filter_map(CoreId::new).filter(|core| everyone & core.mask() != 0);
        if all_sleep && !cores().any(|core| PENDING[core.index()].load(Ordering::Relaxed)) {
            match cores().filter_map(timer::deadline).min() {
                Some(deadline) => _ = NOW.fetch_max(deadline, Ordering::Relaxed),
                None => panic!("every core sleeps, and nothing will ever wake one: a wake-up was lost"),
            }
        }
        shuttle::thread::yield_now();
    }
    ASLEEP.fetch_and(!core.mask(), Ordering::Relaxed);
}
