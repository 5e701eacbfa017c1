//! What is counted after a delivery.

use super::Worker;
use crate::actor::delivery::Tally;
use crate::actor::shared::Shared;
use crate::stats::WorkerStatistics;
use crate::sync::PreemptGuard;

/// Adds what a delivery counted.
pub(in crate::actor) fn note(shared: &Shared, tally: &Tally, here: &PreemptGuard) {
    note_at(shared, tally, Worker::statistics(here), here);
}

/// [`note`], for who has found this core's counters already.
#[inline(always)]
pub(super) fn note_at(shared: &Shared, tally: &Tally, statistics: &WorkerStatistics, here: &PreemptGuard) {
    statistics.messages_handled.add(tally.handled);
    if tally.dead_letters | tally.ended > 0 {
        note_ends(shared, tally, statistics, here);
    }
}

#[cold]
#[inline(never)]
fn note_ends(shared: &Shared, tally: &Tally, statistics: &WorkerStatistics, here: &PreemptGuard) {
    statistics.dead_letters.add(tally.dead_letters);
    if tally.ended > 0 {
        statistics.actors_ended.add(tally.ended);
        if tally.kept {
            shared.note_kept();
        }
        shared.live.ended(tally.ended, here);
    }
}
