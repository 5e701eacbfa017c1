//! What waits on a core, as the rules of [`sharing`](crate::sched::policy::sharing) see it.

use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::clock;
use crate::sched::cores::Core;
use crate::sched::policy::settings::{self, Setting};

/// How many processes wait on a core that a thief could take; zero if there is only one and its core will reach it at
/// once.
fn crowding(is_in_turn: bool, stealable: usize) -> u64 {
    let waiting = stealable as u64;
    if waiting == 1 && !is_in_turn { 0 } else { waiting }
}

/// Whether enough waits on a core to call a thief at once: one process, if the last that were taken were worth it.
#[inline(always)]
pub(crate) fn is_backlog(core: &Core, stealable: usize) -> bool {
    is_enough(core, crowding(core.in_turn.is_in(), stealable))
}

fn is_enough(core: &Core, waiting: u64) -> bool {
    let are_many =
        || waiting >= settings::get(Setting::ShareProcesses) && core.crowd.may_be_tried(clock::now());
    waiting > 0 && (core.worth.pays() || are_many())
}

/// Whether what waits on a core has its turn there before long: the one that goes on has not gone on for half a slice, and nothing urgent has one or
/// waits. Thieves need not come at once then.
pub(crate) fn moves(core: &Core, now: u64) -> bool {
    let long = settings::ticks(Setting::SliceMicroseconds) / 2;
    !core.in_turn.is_urgent() && !core.queue.has_urgent() && core.turn_began_at() + long > now
}

/// The cores on which so much waits that the balancer may take some of it, as each has seen itself at the end of a slice.
static CROWDED: AtomicU64 = AtomicU64::new(0);

/// As many as must wait on a core for a busy one, where nothing waits, to take one: half of the difference.
const CROWD: u64 = 2;

/// Whether on another core than this so much waits, or did when it looked last. One load, however many cores there are: it is asked in
/// interrupts.
pub(crate) fn others_are_crowded(core: &Core) -> bool {
    // Relaxed: an estimate.
    CROWDED.load(Ordering::Relaxed) & !core.mask() != 0
}

/// Nothing waits on this core, which becomes idle. Thieves do not look at it then. Owner only.
pub(crate) fn note_none_waits(core: &Core) {
    core.crowd.ends();
    say_crowded(core, false);
}

/// Says whether so much waits on this core, if that has changed. Owner only.
fn say_crowded(core: &Core, is_crowded: bool) {
    if core.is_crowded.replace(is_crowded) == is_crowded {
        return;
    }
    // Relaxed, both: as above.
    if is_crowded {
        CROWDED.fetch_or(core.mask(), Ordering::Relaxed);
    } else {
        CROWDED.fetch_and(!core.mask(), Ordering::Relaxed);
    }
}

/// As [`may_be_robbed`], for the core itself at the end of a slice, in a turn or behind one that was interrupted: records what it sees, and says
/// whether it is crowded.
#[inline(always)]
pub(crate) fn note_waiting(core: &Core, now: u64, is_in_turn: impl FnOnce() -> bool) {
    // Mostly nothing does, and this may be in an interrupt.
    let waiting = if core.queue.is_flagged() {
        crowding(is_in_turn(), core.queue.stealable_where_flagged())
    } else {
        0
    };
    core.crowd.note(waiting > 0, now);
    say_crowded(core, waiting >= CROWD);
}

/// Whether a thief may take from a core at `now`. Records what it sees.
pub(crate) fn may_be_robbed(core: &Core, now: u64) -> bool {
    // Most have nothing, and to ask all queues takes long. A flag may seem clear for a moment, as if the caller had looked a moment before.
    let waiting = if core.queue.is_flagged() {
        crowding(core.in_turn.is_in(), core.queue.stealable_where_flagged())
    } else {
        0
    };
    let has_waited =
        core.crowd.lasts(waiting > 0, now) && (core.crowd.may_be_tried(now) || !moves(core, now));
    has_waited | is_enough(core, waiting)
}
