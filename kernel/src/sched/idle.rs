//! Idle: search, announce, look again, doze, sleep; and the wakers' half.
//!
//! A core with nothing to run
//! 1. searches the others for work that may leave (see [`sharing`](super::sharing)), if not enough others do so already;
//! 2. announces that it is idle (its [`IdleFlag`](crate::sync::IdleFlag), and the mask of idle cores),
//!    **full barrier**;
//! 3. looks again at everything a waker could have changed before it could see the announcement;
//! 4. dozes for a short while (WFE), announces that it sleeps, looks again, and sleeps (WFI, ended by an
//!    SGI or the timer);
//! 5. begins anew after `share.wait_us` while others are busy, for what it saw waiting may leave by then; the next time
//!    after twice as long, `share.looks` times. Then it sleeps until it is woken, and executes nothing.
//!
//! A waker makes the work visible, **full barrier**, then reads the announcement. With a full barrier on
//! both sides one of the two must see the other, so either the waker wakes or the look finds the work.
//!
//! The same argument covers the thieves. A producer that sees a thief searching wakes nobody; a thief
//! that ends its search with nothing says so before its announcement, and looks at everybody's queues
//! after it.

use super::cores::{self, Core};
use super::settings::{self, Setting};
use super::{calls, core_loop, dispatch, out_of_work, residents, steal};
use crate::arch::atomic::{AtomicBool, AtomicU64, Ordering};
use crate::arch::{barrier, clock, cpu, ipi, irq, timer};
use crate::mem::heap::HEAP;
use crate::stats::Activity;
use crate::sync::Depth;
use crate::time;

/// How often a core that sees work it fails to get tries again before it sleeps all the same. The owner
/// of that work looks again at the end of its slice.
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
        || calls::all() != 0
}

fn timer_is_due(core: &Core) -> bool {
    // Relaxed: set by this core's own interrupt.
    core.timer_due.load(Ordering::Relaxed) != 0
        || time::next_deadline(core.id()).is_some_and(|at| at <= clock::now())
}

/// The core has nothing to run: returns when it may have.
pub(super) fn idle(core: &Core) {
    // Mail elsewhere is the business of whoever was called and of the one who watches; a worker that has run dry has
    // looked for itself.
    let mut looks = core.watches.replace(false);
    for _ in 0..FRUITLESS_SEARCHES {
        // Relaxed: set by whoever called this core, before the claim that this core has acquired since.
        if core.called_to_steal.load(Ordering::Relaxed) != 0 {
            core.called_to_steal.store(0, Ordering::Relaxed);
            core.looks.set(0);
            looks = true;
        }
        if steal::search(core) {
            core.enter(Activity::Running);
            return;
        }
        announce(core, Depth::Doze);
        let stealable = steal::has_candidate(core);
        let surplus = looks && has_surplus(core);
        if !finds_work(core) && !stealable && !surplus {
            break;
        }
        retract(core);
        if core_loop::has_work(core) {
            core.enter(Activity::Running);
            return;
        }
        if surplus {
            // The residents search the others' mailboxes; this core's loop searches their queues.
            core.next_rouse.set(clock::now() + settings::ticks(Setting::ShareWaitMicroseconds));
            residents::rouse(core);
            core.enter(Activity::Running);
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

/// Whether the residents of this core would find mail that may leave its core. Not again right after they were told:
/// they may have found it taken.
fn has_surplus(core: &Core) -> bool {
    let now = clock::now();
    // First the look, which notes what it sees.
    residents::any_surplus(now) && now >= core.next_rouse.get()
}

/// Whether a core sleeps only until it looks again. One at a time, after the same rule as for thieves: if it finds work,
/// and sees more, it wakes the next.
static WATCHED: AtomicBool = AtomicBool::new(false);

/// When this core looks again for what may leave others, if it is the one who does: nobody does when nobody is busy, nor
/// a core that is out of service.
fn next_look(core: &Core) -> Option<u64> {
    let looks = core.looks.get();
    let is_online = cores::online() & core.id().mask() != 0;
    if !is_online || cores::count() == 1 || idle_cores() & cores::started() == cores::started() {
        return None;
    }
    let most = settings::get(Setting::ShareLooks);
    if u64::from(looks) >= most && timer::INTERRUPTS {
        return None;
    }
    // Relaxed: it limits, and orders nothing.
    if WATCHED.swap(true, Ordering::Relaxed) {
        return None;
    }
    core.watches.set(true);
    core.looks.set(looks + 1);
    let doubled = u64::from(looks).min(most.saturating_sub(1)).min(16);
    Some(clock::now() + (settings::ticks(Setting::ShareWaitMicroseconds) << doubled))
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
    match next_look(core).into_iter().chain(time::next_deadline(core.id())).min() {
        Some(at) => timer::arm(at),
        None => timer::disarm(),
    }
    core.slice_end.set(0);
    core.next_look.set(0);
    core.statistics.sleeps.bump();
    let wait = || {
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
    };
    // SAFETY: this is the core's loop. To look at queues and timers takes no memory, and interrupt handlers use the heap
    // only when they interrupt what can be preempted.
    unsafe { HEAP.lend_cache_during(wait) };
    if core.watches.get() {
        // Relaxed: as in `next_look`.
        WATCHED.store(false, Ordering::Relaxed);
    }
}
