//! Stealing processes: one pass of a thief over its victims.
//!
//! At most `thieves` cores search at once (one by default, after the Sophie note); the others sleep until
//! a thief that found work sees more of it and wakes the next. A thief takes from the highest non-empty
//! priority of its victim, oldest first, half of the queue up to a cap.

use crate::arch::clock;
use crate::sched::cores::here::is_wanted_urgently;
use crate::sched::cores::{self, Core, Robbed, ThisCore};
use crate::sched::place::thieves::Thief;
use crate::sched::place::{self, enqueue, thieves, wake};
use crate::sched::policy::dispatch::{self, Dispatch};
use crate::sched::policy::migration::Urgency;
use crate::sched::policy::settings::{self, Setting};
use crate::sched::policy::sharing::Crowd;
use crate::sched::policy::victim::rule;
use crate::sched::process::{Header, Priority, Runnable};
use crate::sched::run::migrate::move_process;
use crate::sched::run::victim::{self, Candidates};
use crate::stats::Activity;
use crate::trace::{self, Kind};

/// Whether this core may steal at all.
fn may_steal(core: &Core) -> bool {
    cores::count() > 1
        && settings::get(Setting::Thieves) > 0
        && dispatch::current() == Dispatch::Stealing
        && cores::online() & core.mask() != 0
}

/// Whether some other core has something that a thief could take, while no other thief is searching.
pub(crate) fn has_candidate(core: &Core) -> bool {
    may_steal(core) && !thieves::are_searching() && candidates(core) != 0
}

/// The cores that `thief` may take from, as a mask. All are looked at, because the look notes what it sees; but not those that are idle, for what
/// has just come there they begin themselves.
#[inline(never)]
fn candidates(thief: &Core) -> u64 {
    let (left_out, now) = (thief.mask() | wake::idle_cores(), clock::now());
    cores::of_mask(cores::existing() & !left_out)
        .filter(|other| place::may_be_robbed(other, now) | run_next_is_stale(other))
        .fold(0, |found, other| found | other.mask())
}

/// What waits in the run-next slot of a core that has been in one turn for a slice may be stolen, too; and below something urgent, for which it has made
/// way, because that may go on for ever in turns that are short.
fn run_next_is_stale(other: &Core) -> bool {
    other.queue.run_next_is_taken() && (other.in_turn.slices() > 0 || other.in_turn.is_urgent())
}

/// Searches the other cores for work; what it takes goes into this core's own queue.
pub(crate) fn search(core: &ThisCore<'_>) -> bool {
    judge_crowd(core);
    if !may_steal(core) {
        return false;
    }
    let Some(thief) = Thief::new(settings::get(Setting::Thieves)) else {
        core.statistics.steal_failures_not_thief.bump();
        return false;
    };
    let (_, began) = core.enter(Activity::Stealing);
    let mut candidates = Candidates(candidates(core));
    let rule = rule(|bound| core.random.below(bound));
    let (mut taken, mut last_victim) = (0, None);
    while taken == 0 {
        let Some(victim) = victim::choose(core, rule, &mut candidates) else { break };
        last_victim = Some(victim);
        core.statistics.steal_attempts.bump();
        taken = rob(core, victim);
        victim::record(core, victim, taken > 0);
    }
    if taken == 0 {
        core.statistics.steal_failures_empty.bump();
        return false;
    }
    if let Some(victim) = last_victim {
        note_crowd(core, victim, began);
        core.taken_from.set(Some(victim.id()));
    }
    drop(thief);
    core.ask_attention();
    core.statistics.steals.bump();
    core.statistics.processes_stolen.add(taken as u64);
    // Work found by a thief while more is visible wakes the next.
    if place::is_backlog(core, core.queue.stealable()) || self::candidates(core) != 0 {
        wake::wake_thief();
    }
    true
}

fn rob(core: &ThisCore<'_>, victim: &'static Core) -> usize {
    let most = settings::get(Setting::StealBatch) as usize;
    for priority in Priority::ALL {
        let mut taken = 0;
        let mut receive = |process| taken += receive(core, victim, process);
        let lost = take_in_steps(core, victim, priority, most, &mut receive);
        core.statistics.steal_failures_lost_race.add(lost as u64);
        if taken > 0 || is_wanted_urgently(core.here()) {
            return taken;
        }
    }
    if run_next_is_stale(victim)
        && let Some(process) = victim.queue.take_next()
    {
        return receive(core, victim, process);
    }
    0
}

/// So many are moved before the loop looks whether something urgent has come: each takes some 300 instructions.
const STEP: usize = 8;

/// Takes up to half of what waits on `source` with one priority, at most `most`, for this core, until something urgent has come here. How
/// often another was faster.
#[inline(never)]
pub(super) fn take_in_steps(
    core: &ThisCore<'_>,
    source: &Core,
    priority: Priority,
    most: usize,
    receive: &mut dyn FnMut(Runnable),
) -> usize {
    let mut left = source.queue.stealable_of(priority).div_ceil(2).min(most);
    let mut lost = 0;
    while left > 0 {
        let count = source.queue.steal(priority, left.min(STEP), receive);
        lost += count.lost;
        left = left.saturating_sub(count.taken);
        if count.taken == 0 || is_wanted_urgently(core.here()) {
            break;
        }
    }
    lost
}

/// Writes a theft down, for whoever looks at what happened.
fn note_theft(process: &Header, victim: &Core) {
    let subject = core::ptr::from_ref(process).addr() as u64;
    trace::note(Kind::Stolen, subject, victim.id().index() as u32, Some(process.vtable().name));
}

/// Takes a stolen process over, or passes it on if it must not run here. Returns how many were taken.
fn receive(core: &ThisCore<'_>, victim: &'static Core, process: Runnable) -> usize {
    match move_process(&process, victim, core, Urgency::Idle) {
        Ok(()) => {
            note_theft(&process, victim);
            core.push(process);
            1
        }
        Err(_) => {
            give_on(process, victim);
            0
        }
    }
}

/// The thief has a process whose mask excludes this core: delivers it to a core of the mask that has nothing to do, or
/// back. Not simply back, because whoever called this core called the first idle one, and would call it again and
/// again.
fn give_on(process: Runnable, victim: &'static Core) {
    let mask = process.affinity_mask() & cores::online();
    let free = cores::all().find(|core| core.mask() & mask != 0 && core.load() == 0);
    let target = free.filter(|free| move_process(&process, victim, free, Urgency::Idle).is_ok());
    // The victim may have looked meanwhile, found nothing, and gone to sleep: so it is told, too.
    enqueue::deliver(process, target.unwrap_or(victim));
}

/// The first turn after a theft has ended, or lasts so long that it is suspended: tells whether the theft was worth it.
#[cold]
#[inline(never)]
pub(crate) fn judge_theft(core: &Core) {
    let victim = core.taken_from.take().and_then(|victim| cores::get(victim.index()));
    if let Some(victim) = victim {
        victim.worth.note(clock::now().saturating_sub(core.turn_began_at()));
    }
}

/// This core has taken something from a crowd, for which it began to search then.
fn note_crowd(core: &Core, victim: &'static Core, began: u64) {
    let now = clock::now();
    // What waited behind a long turn, or something urgent, was worth it however little it is.
    if place::moves(victim, now) {
        victim.crowd.note_theft(now);
        core.robbed.set(Some(Robbed {
            victim,
            at: now,
            enough: now + Crowd::ENOUGH * now.saturating_sub(began),
        }));
    }
}

/// This core has nothing to do: tells whether what it took last was worth it.
fn judge_crowd(core: &Core) {
    if let Some(Robbed { victim, at, enough }) = core.robbed.take() {
        victim.crowd.judge(at, clock::now() >= enough);
    }
}
