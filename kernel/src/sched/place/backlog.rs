//! What waits on a core, as the rules of [`sharing`](crate::sched::policy::sharing) see it.

use crate::sched::cores::Core;
use crate::sched::policy::settings::{self, Setting};

/// How many processes wait on a core that a thief could take; zero if there is only one and its core will reach it at
/// once.
fn crowding(core: &Core, stealable: usize) -> u64 {
    let waiting = stealable as u64;
    if waiting == 1 && !core.in_turn.is_in() { 0 } else { waiting }
}

/// Whether enough waits on a core to call a thief at once: one process, if the last that were taken were worth it.
#[inline(always)]
pub(crate) fn is_backlog(core: &Core, stealable: usize) -> bool {
    is_enough(core, crowding(core, stealable))
}

fn is_enough(core: &Core, waiting: u64) -> bool {
    waiting > 0 && (core.worth.pays() || waiting >= settings::get(Setting::ShareProcesses))
}

/// Whether a thief may take from a core at `now`. Records what it sees.
pub(crate) fn may_be_robbed(core: &Core, now: u64) -> bool {
    let waiting = crowding(core, core.queue.stealable());
    core.crowd.lasts(waiting > 0, now) | is_enough(core, waiting)
}
