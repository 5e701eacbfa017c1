//! What a resident has in hand when its turn is over goes back in the core's loop, a few at a time, and what is more urgent has its turns in
//! between. Nobody else has one before all of it has gone back, because others could get at it by then if the turn had given it back itself.
//!
//! - A slice after it was put off it goes back at once, whoever waits.
//! - The resident's own next turn, and one of a piece that was detached from it, does the rest first.
//! - One resident of a core at a time: a second one gives back all at its turn's end.

use super::attention;
use crate::arch::clock;
use crate::sched::cores::{Core, ThisCore};
use crate::sched::policy::settings::{self, Setting};
use crate::sched::process::ProcessRef;
use crate::sched::spawn::residents;
use crate::sync::PreemptGuard;

/// The turn of `process`, a resident of this core, is over or will be at once: its core's loop has it give back what it has in hand. Whether it
/// will; if not, it gives that back itself.
pub(crate) fn later(process: &ProcessRef, here: &PreemptGuard) -> bool {
    let Some(core) = Core::current(here).filter(|core| !is_wanted(core)) else { return false };
    core.gives_back_from.set(clock::now().max(1));
    core.gives_back_as.set(process.priority());
    core.gives_back.set(Some(process.clone()));
    core.ask_attention();
    true
}

/// `process`, a resident of this core, has given back all that it had in hand.
pub(crate) fn done(process: &ProcessRef, here: &PreemptGuard) {
    let Some(core) = Core::current(here) else { return };
    let waiting = core.gives_back.take();
    if waiting.as_ref().is_some_and(|waiting| waiting.pointer() == process.pointer()) {
        core.gives_back_from.set(0);
    } else {
        core.gives_back.set(waiting);
    }
}

/// Whether a resident of the core has something to give back.
#[inline(always)]
pub(crate) fn is_wanted(core: &Core) -> bool {
    core.gives_back_from.get() != 0
}

/// Whether what has the next turn comes before what a resident of the core has to give back, if one has.
#[inline(always)]
pub(crate) fn may_wait(core: &Core) -> bool {
    !is_wanted(core) || (makes_way(core) && !is_overdue(core))
}

/// Whether it has had something for a slice.
fn is_overdue(core: &Core) -> bool {
    is_wanted(core)
        && clock::now() >= core.gives_back_from.get() + settings::ticks(Setting::SliceMicroseconds)
}

/// Goes on until nothing is left, or something more urgent is to have the next turn. In the core's loop, between two turns.
pub(crate) fn go_on(core: &ThisCore<'_>) {
    let Some(process) = core.gives_back.take() else { return core.gives_back_from.set(0) };
    loop {
        attention::look_for_urgent(core);
        if makes_way(core) && !is_overdue(core) {
            return core.gives_back.set(Some(process));
        }
        // SAFETY: a resident of this core, which has put it off, and whose next turn this loop has not begun.
        if unsafe { !residents::give_back(process.pointer()) } {
            return core.gives_back_from.set(0);
        }
    }
}

/// Whether the next turn is that of something more urgent.
#[inline(always)]
fn makes_way(core: &Core) -> bool {
    let priority = core.gives_back_as.get();
    core.queue.has_more_urgent(priority) || (core.chosen.is_some() && !priority.is_urgent())
}
