//! Waking: which cores have announced that they are idle, and how one is woken. What an idle core does is in
//! `run/idle.rs`.
//!
//! A waker makes the work visible, **full barrier**, then reads the announcement. With a full barrier on
//! both sides one of the two must see the other, so either the waker wakes or the look finds the work.
//!
//! The same argument covers the thieves. A producer that sees a thief searching wakes nobody; a thief
//! that ends its search with nothing says so before its announcement, and looks at everybody's queues
//! after it.

use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::{barrier, cpu, ipi};
use crate::sched::cores::idle_flag::Depth;
use crate::sched::cores::{self, Core};
use crate::sched::place::thieves;
use crate::sched::policy::dispatch::{self, Dispatch};

/// The cores that have announced that they are idle, and have not gone on yet.
static IDLE_CORES: AtomicU64 = AtomicU64::new(0);

/// Which cores are idle, as a mask. To be relied on, it needs a full barrier between making work visible
/// and this.
pub(crate) fn idle_cores() -> u64 {
    // Acquire: pairs with `retract`.
    IDLE_CORES.load(Ordering::Acquire)
}

/// Whether any core has announced that it is idle; an estimate.
#[inline(always)]
pub(crate) fn some_core_is_idle() -> bool {
    // Relaxed: an estimate.
    IDLE_CORES.load(Ordering::Relaxed) != 0
}

/// Whether `core` has announced that it is idle.
pub(crate) fn is_idle(core: &Core) -> bool {
    idle_cores() & core.mask() != 0
}

/// Wakes `core` if it is idle. The caller has made the work visible and passed a full barrier since.
///
/// A core whose own interrupt does that is interrupted already: it looks again, whether it is still idle, after every interrupt before it waits
/// for the next (`run/idle.rs`).
pub(crate) fn wake(core: &Core) -> bool {
    let Some(depth) = core.idle.claim_after_fence() else { return false };
    core.note_woken();
    match depth {
        Depth::Doze => cpu::send_event(),
        Depth::Sleep if core.is_here() => {}
        Depth::Sleep => ipi::send(core.id()),
    }
    true
}

/// Wakes one idle core as a thief, unless one searches already. The caller has made work visible; the
/// barrier is here.
pub(crate) fn wake_thief() {
    if cores::count() == 1 {
        return;
    }
    barrier::full();
    let mut idle = idle_cores() & cores::online();
    if idle == 0 || thieves::are_searching() || dispatch::current() == Dispatch::PerCore {
        return;
    }
    while idle != 0 {
        let index = idle.trailing_zeros() as usize;
        idle &= idle - 1;
        if let Some(core) = cores::get(index) {
            // Relaxed: ordered by the claim in `wake`, which the core's `retract` acquires.
            core.called_to_steal.store(1, Ordering::Relaxed);
            if wake(core) {
                return;
            }
        }
    }
}

/// The core itself is idle from now on, in this depth. A full barrier is in here, before the look that follows.
pub(crate) fn announce(core: &Core, depth: Depth) {
    // AcqRel: before the flag, whose fence orders both before the look that follows.
    IDLE_CORES.fetch_or(core.mask(), Ordering::AcqRel);
    core.idle.announce(depth);
}

/// Takes back the announcement, whoever ended the wait. The caller then notes that it is active, before it takes any
/// work.
///
/// Only the core itself changes its bit in the mask: a waker's late clearing could hit the next
/// announcement. So the bit of a core that was woken stays set until it gets here, before it takes any
/// work; see `run/out_of_work.rs` for why that is enough.
pub(crate) fn retract(core: &Core) {
    core.idle.retract();
    // AcqRel, as in `announce`; ordered by the barrier in `out_of_work::leave_idleness`.
    IDLE_CORES.fetch_and(!core.mask(), Ordering::AcqRel);
}
