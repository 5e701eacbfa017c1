//! Stealing processes: one pass of a thief over its victims.
//!
//! At most `thieves` cores search at once (one by default, after the Sophie note); the others sleep until
//! a thief that found work sees more of it and wakes the next. A thief takes from the highest non-empty
//! priority of its victim, oldest first, half of the queue up to a cap.

use core::ptr::NonNull;

use super::cores::{self, Core};
use super::enqueue;
use super::idle;
use super::migration::{self, Urgency};
use super::priority::Priority;
use super::process::Header;
use super::settings::{self, Setting};
use super::sharing;
use super::victim::{self, Candidates};
use crate::arch::atomic::{AtomicU32, Ordering};
use crate::arch::clock;
use crate::stats::Activity;

static SEARCHING: AtomicU32 = AtomicU32::new(0);

/// Whether a thief is searching; for producers that have made work visible and passed a full barrier.
pub(super) fn is_searching() -> bool {
    // Relaxed: ordered by the caller's barrier; pairs with the thief's announcement after its search.
    SEARCHING.load(Ordering::Relaxed) != 0
}

/// The right to search.
struct Thief;

impl Thief {
    fn new() -> Option<Self> {
        let limit = settings::get(Setting::Thieves);
        // AcqRel: a count that limits; what orders searches against producers are the barriers in `idle`.
        if u64::from(SEARCHING.fetch_add(1, Ordering::AcqRel)) < limit {
            return Some(Self);
        }
        SEARCHING.fetch_sub(1, Ordering::AcqRel);
        None
    }
}

impl Drop for Thief {
    fn drop(&mut self) {
        // AcqRel: as in `new`.
        SEARCHING.fetch_sub(1, Ordering::AcqRel);
    }
}

/// Whether this core may steal at all.
fn may_steal(core: &Core) -> bool {
    cores::count() > 1
        && settings::get(Setting::Thieves) > 0
        && super::dispatch::current() == super::dispatch::Dispatch::Stealing
        && cores::online() & core.id().mask() != 0
}

/// Whether some other core has something that a thief could take, while no other thief is at it.
pub(super) fn has_candidate(core: &Core) -> bool {
    may_steal(core) && !is_searching() && candidates(core).count() > 0
}

/// The cores that `thief` may take from. All are looked at, for the look notes what it sees.
fn candidates(thief: &Core) -> impl Iterator<Item = &'static Core> {
    let (thief, now) = (thief.id(), clock::now());
    cores::all().filter(move |other| {
        other.id() != thief && (sharing::may_be_robbed(other, now) | fast_lane_is_stale(other))
    })
}

/// What waits in the fast lane of a core that has been in one turn for a slice is fair game.
fn fast_lane_is_stale(other: &Core) -> bool {
    // Relaxed: an estimate.
    other.queue.fast_lane_is_taken() && other.slices.load(Ordering::Relaxed) > 0
}

/// Searches the other cores for work; what it takes goes into this core's own queue.
pub(super) fn search(core: &Core) -> bool {
    if !may_steal(core) {
        return false;
    }
    let Some(thief) = Thief::new() else {
        core.statistics.steal_failures_not_thief.bump();
        return false;
    };
    core.enter(Activity::Stealing);
    let mut candidates = Candidates::new(candidates(core).map(Core::id));
    let rule = victim::rule(core);
    let (mut taken, mut last_victim) = (0, None);
    while taken == 0 {
        let Some(victim) = victim::choose(core, rule, &mut candidates) else { break };
        last_victim = Some(victim.id());
        core.statistics.steal_attempts.bump();
        taken = rob(core, victim);
        victim::record(core, victim, taken > 0);
    }
    drop(thief);
    if taken == 0 {
        core.statistics.steal_failures_empty.bump();
        return false;
    }
    core.taken_from.set(last_victim);
    core.statistics.steals.bump();
    core.statistics.processes_stolen.add(taken as u64);
    // Work found by a thief while more is visible wakes the next.
    if sharing::is_backlog(core) || self::candidates(core).count() > 0 {
        idle::wake_thief();
    }
    true
}

fn rob(core: &Core, victim: &'static Core) -> usize {
    let most = settings::get(Setting::StealBatch) as usize;
    for priority in Priority::ALL {
        let mut taken = 0;
        let count = victim.queue.of(priority).steal(most, |process| taken += receive(core, victim, process));
        core.statistics.steal_failures_lost_race.add(count.lost as u64);
        if taken > 0 {
            return taken;
        }
    }
    if fast_lane_is_stale(victim)
        && let Some(process) = victim.queue.take_fast()
    {
        return receive(core, victim, process);
    }
    0
}

/// Takes a stolen process over, or gives it on where it must not run. Returns how many were taken.
fn receive(core: &Core, victim: &'static Core, process: NonNull<Header>) -> usize {
    // SAFETY: a process in hand is alive.
    let header = unsafe { process.as_ref() };
    match migration::move_process(header, victim, core, Urgency::Idle) {
        Ok(()) => {
            // SAFETY: this is the thief's own core loop.
            unsafe { core.queue.push_own(process) };
            1
        }
        Err(_) => {
            give_on(process, victim);
            0
        }
    }
}

/// A thief has a process that its mask keeps from this core: takes it to a core of the mask that has nothing to do, or
/// back. Not back alone, because whoever called this core called the first idle one, and would call it again and again.
fn give_on(process: NonNull<Header>, victim: &'static Core) {
    // SAFETY: a process in hand is alive.
    let header = unsafe { process.as_ref() };
    let mask = header.affinity() & cores::online();
    let free = cores::all().find(|core| core.id().mask() & mask != 0 && core.load() == 0);
    let target = free.filter(|free| migration::move_process(header, victim, free, Urgency::Idle).is_ok());
    // The victim may have looked meanwhile, found nothing, and gone to sleep: so it is told, too.
    enqueue::deliver(process, target.unwrap_or(victim));
}
