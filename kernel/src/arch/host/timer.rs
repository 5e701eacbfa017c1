//! Each core's one-shot timer: a deadline that [`super::cpu::wait_for_interrupt`] honours.

use core::sync::atomic::{AtomicU64, Ordering};

use super::{clock, percpu};
use crate::arch::{CoreId, MAX_CORES};

/// Whether a deadline interrupts what the core runs: a thread has no interrupts, see [`poll`].
pub const INTERRUPTS: bool = false;

const DISARMED: u64 = u64::MAX;

// Only the thread of the core itself reads and writes its entry, so nothing needs ordering.
static DEADLINES: [AtomicU64; MAX_CORES] = [const { AtomicU64::new(DISARMED) }; MAX_CORES];

/// Arms this core's timer for `deadline` in clock ticks; one in the past fires at once.
pub fn arm(deadline: u64) {
    DEADLINES[percpu::host_core().index()].store(deadline, Ordering::Relaxed);
}

/// Arms this core's timer for `deadline`, unless it is armed for an earlier moment.
pub fn arm_if_earlier(at: u64) {
    if deadline(percpu::host_core()).is_none_or(|armed| armed > at) {
        arm(at);
    }
}

/// Disarms this core's timer.
pub fn disarm() {
    DEADLINES[percpu::host_core().index()].store(DISARMED, Ordering::Relaxed);
}

/// Lets other threads run: the host's scheduler knows who can, and is not kept from anything by one that waits.
pub fn sleep_at_most(_ticks: u64) {
    super::cpu::relax();
}

/// Disarms this core's timer if its deadline has passed, and returns whether it had: a thread has no interrupt that
/// would notify it, so the core loop asks.
pub fn poll() -> bool {
    expire(percpu::host_core())
}

/// The same, for a core that waits.
pub fn take_due() -> bool {
    poll()
}

pub(super) fn deadline(core: CoreId) -> Option<u64> {
    let deadline = DEADLINES[core.index()].load(Ordering::Relaxed);
    (deadline != DISARMED).then_some(deadline)
}

/// Disarms the timer of `core` if its deadline has passed, and returns whether it had.
pub(super) fn expire(core: CoreId) -> bool {
    let due = deadline(core).is_some_and(|deadline| deadline <= clock::now());
    if due {
        DEADLINES[core.index()].store(DISARMED, Ordering::Relaxed);
    }
    due
}
