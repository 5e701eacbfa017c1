//! What is counted after a delivery.

use super::Worker;
use crate::actor::run::executor_state::ExecutorState;
use crate::actor::run::tally::Tally;
use crate::stats::WorkerStatistics;
use crate::sync::PreemptGuard;

/// Adds what a delivery counted, and empties its tally.
pub(in crate::actor::run) fn note(executor: &ExecutorState, tally: &Tally, here: &PreemptGuard) {
    note_at(executor, tally, Worker::statistics(here), here);
}

/// [`note`], for whoever has found this core's counters already.
#[inline(always)]
pub(super) fn note_at(
    executor: &ExecutorState,
    tally: &Tally,
    statistics: &WorkerStatistics,
    here: &PreemptGuard,
) {
    statistics.messages_handled.add(tally.take_handled());
    if tally.has_ends() {
        note_ends(executor, tally, statistics, here);
    }
}

#[cold]
#[inline(never)]
fn note_ends(executor: &ExecutorState, tally: &Tally, statistics: &WorkerStatistics, here: &PreemptGuard) {
    let counts = tally.take();
    statistics.dead_letters.add(counts.dead_letters);
    if counts.ended > 0 {
        statistics.actors_ended.add(counts.ended);
        if counts.kept {
            executor.note_kept();
        }
        executor.live.ended(counts.ended, here);
    }
}
