//! How long something urgent waits whose timer is due while its core goes from one turn to the next, or begins or ends a section
//! in which nothing is preempted: every moment there is tried.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::sched::{self, Priority, Spawn};
use magpie::time::{self, Instant, of_ticks};
use magpie_tests::{Failure, ensure, kernel_test};

use crate::{needs_counted_time, within};

/// Moments that are tried, a tick of the clock apart: longer than from the end of one turn to the first instruction of the next.
const MOMENTS: u64 = 250;

/// Far less than a slice, and more than it takes to try again and to preempt; where other cores run, their turns go on the same clock.
const LONGEST: Duration = Duration::from_micros(60);

/// How long a process spins that must not keep an urgent one waiting: longer than a slice.
const SPINS: Duration = Duration::from_micros(3_000);

/// The tick at which the urgent one has run; 0 before.
#[derive(Clone, Default)]
struct Ran(Arc<AtomicU64>);

impl Ran {
    /// An urgent process that sleeps until `moment`.
    fn start(&self, moment: Instant) -> Result<sched::JoinHandle<()>, Failure> {
        let ran = self.0.clone();
        Ok(Spawn::new().pinned(CoreId::BOOT).priority(Priority::High).start(async move {
            time::sleep_until(moment).await;
            ran.store(Instant::now().ticks(), Ordering::Relaxed);
        })?)
    }

    /// Spins until it has run, or for too long.
    fn wait(&self) {
        let began = Instant::now();
        while self.0.load(Ordering::Relaxed) == 0 && began.elapsed() < SPINS {
            core::hint::spin_loop();
        }
    }

    fn late(&self, moment: Instant) -> Duration {
        of_ticks(self.0.load(Ordering::Relaxed).saturating_sub(moment.ticks()))
    }
}

/// Tries every moment: `body` is to be doing what is tried when the moment comes, and then spins. The longest that the urgent one
/// was late, of those whose moment had not come before.
async fn longest_of_all<F: Future<Output = ()> + Send + 'static>(
    body: impl Fn(Ran, Instant) -> F,
) -> Result<(Duration, u64), Failure> {
    let (mut longest, mut tried) = (Duration::ZERO, 0);
    for number in 0..MOMENTS {
        let ran = Ran::default();
        // Time to begin, and for others to fall asleep.
        let moment = Instant::now() + Duration::from_micros(400);
        let urgent = ran.start(moment)?;
        sched::yield_now().await;
        let until = moment.ticks() - number;
        let (body, early) = (body(ran.clone(), moment), Ran::default());
        let seen = early.0.clone();
        let tries = Spawn::new().pinned(CoreId::BOOT).start(async move {
            while Instant::now().ticks() < until {
                core::hint::spin_loop();
            }
            seen.store(1, Ordering::Relaxed);
            body.await;
        })?;
        ensure!(tries.await.is_ok() && urgent.await.is_ok(), "a process crashed");
        tried += early.0.load(Ordering::Relaxed);
        longest = longest.max(ran.late(moment));
    }
    Ok((longest, tried))
}

kernel_test! {
    /// While the loop goes from a turn that yields to one that spins, by the short way and by the long one.
    async fn between_two_turns_nothing_urgent_is_forgotten() -> Outcome {
        needs_counted_time()?;
        for pinned in [false, true] {
            let (longest, tried) = longest_of_all(move |ran, _| async move {
                // The one that spins waits by now, and has its turn when this one yields.
                let spins = if pinned { Spawn::new().pinned(CoreId::BOOT) } else { Spawn::new() };
                let spinning = ran.clone();
                let Ok(spinning) = spins.start(async move { spinning.wait() }) else { return };
                sched::yield_now().await;
                ran.wait();
                _ = spinning.await;
            })
            .await?;
            magpie::log::text!("between turns, {tried} moments: {} ns late at most", longest.as_nanos());
            within(longest, LONGEST, "something urgent, due between two turns")?;
        }
        Ok(())
    }
}

kernel_test! {
    /// While a turn begins and ends sections in which nothing is preempted, one in the other.
    async fn in_a_section_nothing_urgent_is_forgotten() -> Outcome {
        needs_counted_time()?;
        let (longest, tried) = longest_of_all(|ran, moment| async move {
            // To look where this runs is a section.
            while Instant::now() < moment + Duration::from_nanos(2_000) {
                core::hint::black_box(sched::current_core());
            }
            ran.wait();
        })
        .await?;
        magpie::log::text!("in sections, {tried} moments: {} ns late at most", longest.as_nanos());
        within(longest, LONGEST, "something urgent, due in a section")
    }
}

kernel_test! {
    /// What timers of one moment wake runs by priority, and of one priority in the order in which they were armed: what was woken first, while
    /// nothing urgent waited, goes neither before what is more urgent nor behind what is not.
    async fn what_one_moment_wakes_runs_by_priority() -> Outcome {
        needs_counted_time()?;
        for _ in 0..20 {
            let order = Arc::new(AtomicU64::new(0));
            let due = Instant::now() + Duration::from_millis(2);
            let mut handles = Vec::new();
            let priorities = [Priority::High, Priority::High, Priority::Max, Priority::High];
            for (number, priority) in (1..).zip(priorities) {
                let order = order.clone();
                let spawn = Spawn::new().pinned(CoreId::BOOT).priority(priority);
                handles.push(spawn.start(async move {
                    time::sleep_until(due).await;
                    // Relaxed: all are on one core, and none preempts another between the two.
                    order.store(order.load(Ordering::Relaxed) * 10 + number, Ordering::Relaxed);
                })?);
                // So that each is armed before the next.
                time::sleep(Duration::from_micros(100)).await;
            }
            for handle in handles {
                ensure!(handle.await.is_ok(), "one crashed");
            }
            // Relaxed: their ends were awaited.
            let order = order.load(Ordering::Relaxed);
            ensure!(order == 3124, "they ran in the order {order}, and not in that of 3124");
        }
        Ok(())
    }
}
