//! Deadlines that are kept: of tasks that together leave a core some time, each keeps its deadline if the one that is due first goes
//! first, though no fixed order would do.

use alloc::vec::Vec;
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::sched::{Priority, Spawn};
use magpie::stats;
use magpie::time::{Instant, interval_at, sleep};
use magpie_tests::{Failure, Outcome, ensure, ensure_eq, kernel_test};

use crate::needs_counted_time;

/// How often each begins, which is also its deadline, and how long it works each time. Together 97 % of a core: more than any fixed
/// order by priorities can promise (83 % for two).
const TASKS: [(Duration, Duration); 2] = [
    (Duration::from_micros(5_000), Duration::from_micros(2_000)),
    (Duration::from_micros(7_000), Duration::from_micros(4_000)),
];

/// How long they go on: several times until their beginnings meet again.
const LONG: Duration = Duration::from_millis(140);

/// Computes for so long: other processes' turns meanwhile do not count. A round of this loop is as long whoever runs.
#[inline(never)]
fn work(rounds: u64) {
    for round in 0..rounds {
        core::hint::black_box(round);
    }
}

/// Rounds of [`work`] in a microsecond, measured undisturbed: the clock goes on while any core executes, so the shortest of several
/// times counts, between which the others fall asleep.
async fn rounds_in_a_microsecond() -> Result<u64, Failure> {
    const ROUNDS: u64 = 100_000;
    let mut shortest = Duration::MAX;
    for _ in 0..5 {
        sleep(Duration::from_millis(2)).await;
        let measure = Spawn::new().priority(Priority::Max).pinned(CoreId::BOOT).start(async {
            let began = Instant::now();
            work(ROUNDS);
            began.elapsed()
        })?;
        shortest = shortest.min(measure.await.map_err(|_| "the measurement crashed")?);
    }
    magpie::log::text!("{ROUNDS} rounds took {} us", shortest.as_micros());
    Ok(ROUNDS / shortest.as_micros().max(1) as u64)
}

/// Runs the tasks, each started so, and returns how often each was late, as it saw it itself.
async fn lateness(spawns: [Spawn; TASKS.len()]) -> Result<Vec<u32>, Failure> {
    let rounds = rounds_in_a_microsecond().await?;
    let begin = Instant::now() + Duration::from_millis(5);
    let mut tasks = Vec::new();
    for ((period, works), spawn) in TASKS.into_iter().zip(spawns) {
        tasks.push(spawn.pinned(CoreId::BOOT).start(async move {
            let (mut ticks, mut late) = (interval_at(begin, period), 0);
            for number in 0..(LONG.as_micros() / period.as_micros()) as u32 {
                ticks.tick().await;
                work(rounds * works.as_micros() as u64);
                late += u32::from(Instant::now() > begin + period * (number + 1));
            }
            late
        })?);
    }
    let mut late = Vec::new();
    for task in tasks {
        late.push(task.await.map_err(|_| "a task crashed")?);
    }
    Ok(late)
}

fn missed() -> u64 {
    stats::total(|core| core.deadlines_missed.get())
}

async fn all_keep_their_deadlines() -> Outcome {
    let before = missed();
    let high = Spawn::new().priority(Priority::High);
    let by_deadline = lateness(TASKS.map(|(period, _)| high.deadline(period))).await?;
    magpie::log::text!("late by deadline: {by_deadline:?}");
    ensure_eq!(by_deadline, [0, 0], "how often each was late");
    ensure_eq!(missed() - before, 0, "missed deadlines that were counted");
    Ok(())
}

kernel_test! {
    /// Two tasks that need 97 % of a core: whichever of them comes first by priority, the other is late; by deadline none is.
    async fn what_no_fixed_order_keeps_is_kept_by_deadline() -> Outcome {
        needs_counted_time()?;
        all_keep_their_deadlines().await?;
        let (max, high) = (Spawn::new().priority(Priority::Max), Spawn::new().priority(Priority::High));
        for fixed in [[max, high], [high, max], [high, high]] {
            let late = lateness(fixed).await?;
            magpie::log::text!("late in a fixed order: {late:?}");
            ensure!(late.iter().any(|&late| late > 0), "a fixed order kept all deadlines: the tasks show nothing");
        }
        Ok(())
    }
}
