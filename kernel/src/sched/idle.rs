//! Idle: search, announce, look again, doze, sleep; and the wakers' half.
//!
//! A core with nothing to run
//! 1. searches the others for work, if not enough others do so already;
//! 2. announces that it is idle (its [`IdleFlag`](crate::sync::IdleFlag), and the mask of idle cores),
//!    **full barrier**;
//! 3. looks again at everything a waker could have changed before it could see the announcement;
//! 4. dozes for a short while (WFE), announces that it sleeps, looks again, and sleeps (WFI, ended by an
//!    SGI or the timer).
//!
//! A waker makes the work visible, **full barrier**, then reads the announcement. With a full barrier on
//! both sides one of the two must see the other, so either the waker wakes or the look finds the work.
//!
//! The same argument covers the thieves. A producer that sees a thief searching wakes nobody; a thief
//! that ends its search with nothing says so before its announcement, and looks at everybody's queues
//! after it.

use super::cores::{self, Core};
use super::settings::{self, Setting};
use super::{core_loop, dispatch, out_of_work, residents, steal, stop};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::{barrier, clock, cpu, ipi, irq, timer};
use crate::stats::Activity;
use crate::sync::Depth;
use crate::time;

/// How often a core that sees work it fails to get tries again before it sleeps all the same. The owner
/// of that work wakes a thief again at its next slice end.
const FRUITLESS_SEARCHES: u32 = 4;

/// The cores that have announced that they are idle, and have not gone on yet.
static IDLE_CORES: AtomicU64 = AtomicU64::new(0);

/// Which cores are idle, as a mask. To be relied on, it needs a full barrier between making work visible
/// and this.
pub(super) fn idle_cores() -> u64 {
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
pub(super) fn is_idle(core: &Core) -> bool {
    idle_cores() & core.id().mask() != 0
}

/// Wakes `core` if it is idle. The caller has made the work visible and passed a full barrier since.
pub(super) fn wake(core: &Core) -> bool {
    let Some(depth) = core.idle.claim_after_fence() else { return false };
    core.note_woken();
    match depth {
        Depth::Doze => cpu::send_event(),
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
    if idle == 0 || steal::is_searching() || dispatch::current() == dispatch::Dispatch::PerCore {
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

fn announce(core: &Core, depth: Depth) {
    // AcqRel: before the flag, whose fence orders both before the look that follows.
    IDLE_CORES.fetch_or(core.id().mask(), Ordering::AcqRel);
    core.idle.announce(depth);
}

/// Takes back the announcement, whoever ended it.
///
/// Only the core itself changes its bit in the mask: a waker's late clearing could hit the next
/// announcement. So the bit of a core that was woken stays set until it gets here, before it takes any
/// work; see `out_of_work` for why that is enough.
pub(super) fn retract(core: &Core) {
    core.idle.retract();
    // AcqRel, as in `announce`; ordered by the barrier in `note_activity`.
    IDLE_CORES.fetch_and(!core.id().mask(), Ordering::AcqRel);
    out_of_work::note_activity();
}

/// What this core itself would find to do.
fn finds_work(core: &Core) -> bool {
    core_loop::has_work(core)
        || timer_is_due(core)
        || core.called_to_steal.load(Ordering::Relaxed) != 0
        || stop::is_requested()
}

fn timer_is_due(core: &Core) -> bool {
    // Relaxed: set by this core's own interrupt.
    core.timer_due.load(Ordering::Relaxed) != 0
        || time::next_deadline(core.id()).is_some_and(|at| at <= clock::now())
}

/// The core has nothing to run: returns when it may have.
pub(super) fn idle(core: &Core) {
    // Relaxed: set by whoever called this core, before the claim that this core has acquired since.
    if core.called_to_steal.load(Ordering::Relaxed) != 0 {
        core.called_to_steal.store(0, Ordering::Relaxed);
        // The residents search the others' mailboxes; this core's loop searches their queues.
        residents::rouse(core);
        if core_loop::has_work(core) {
            return;
        }
    }
    for _ in 0..FRUITLESS_SEARCHES {
        if steal::search(core) {
            core.enter(Activity::Running);
            return;
        }
        announce(core, Depth::Doze);
        let stealable = steal::has_candidate(core);
        if !finds_work(core) && !stealable && !residents::surplus_elsewhere(core) {
            break;
        }
        retract(core);
        if !stealable {
            if !core_loop::has_work(core) {
                residents::rouse(core);
            }
            return;
        }
    }
    core.enter(Activity::Idle);
    announce(core, Depth::Doze);
    if !finds_work(core) && !out_of_work::check(core) {
        doze(core);
        sleep(core);
    }
    retract(core);
    core.note_awake();
    core.enter(Activity::Running);
}

fn doze(core: &Core) {
    let end = clock::now() + settings::ticks(Setting::DozeMicroseconds);
    core.statistics.dozes.bump();
    while core.idle.depth().is_some() && clock::now() < end {
        cpu::wait_for_event();
    }
}

fn sleep(core: &Core) {
    if core.idle.depth().is_none() {
        return;
    }
    announce(core, Depth::Sleep);
    match time::next_deadline(core.id()) {
        Some(deadline) => timer::arm(deadline),
        None => timer::disarm(),
    }
    core.slice_end.set(0);
    core.statistics.sleeps.bump();
    while core.idle.depth().is_some() && !finds_work(core) {
        // With interrupts masked, one that arrives between the look and WFI stays pending and ends it.
        irq::disable();
        if core.idle.depth().is_some() && !finds_work(core) {
            cpu::wait_for_interrupt();
        }
        // SAFETY: the core loop runs with interrupts unmasked; they were masked above. The interrupt is
        // taken here.
        unsafe { irq::enable() };
    }
}
