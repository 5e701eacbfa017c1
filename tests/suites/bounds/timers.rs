//! How late a timer wakes who waits for it, on a machine that does nothing else.

use alloc::vec::Vec;
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::sched::{Priority, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{Failure, Outcome, ensure, ensure_eq, kernel_test};

use crate::needs_counted_time;

const SLEEPS: u64 = 200;
const TICKS: u32 = 200;

/// From the moment to the first instruction of who waited: the interrupt, the way through the core's loop, and the turn's
/// beginning.
const MEAN: Duration = Duration::from_micros(2);
/// What other cores execute meanwhile, on their way to sleep, goes on the same clock: 3.4 µs on one core, 5.5 on eight.
const LONGEST: Duration = Duration::from_micros(10);

/// How late each was.
fn judge(mut late: Vec<Duration>, what: &str) -> Outcome {
    late.sort();
    let longest = late.last().copied().unwrap_or_default();
    let mean = late.iter().sum::<Duration>() / late.len().max(1) as u32;
    magpie::log::text!("{what} is {} ns late, at most {} ns", mean.as_nanos(), longest.as_nanos());
    ensure!(mean < MEAN, "{what} is {} ns late on average", mean.as_nanos());
    ensure!(longest < LONGEST, "{what} is {} ns late at most", longest.as_nanos());
    Ok(())
}

/// How late a process of this priority awakes from sleeps of odd lengths, of up to a tenth of a millisecond more than `least`.
async fn lateness(priority: Priority, least: Duration) -> Result<Vec<Duration>, Failure> {
    let sleeper = Spawn::new().priority(priority).pinned(CoreId::BOOT).start(async move {
        let mut late = Vec::new();
        for number in 0..SLEEPS {
            let until = Instant::now() + least + Duration::from_nanos(number * 7919 % 100_003);
            time::sleep_until(until).await;
            let now = Instant::now();
            ensure!(now >= until, "sleep {number} was over {} ns early", (until - now).as_nanos());
            late.push(now - until);
        }
        Ok::<_, Failure>(late)
    })?;
    sleeper.await?
}

kernel_test! {
    /// A sleep ends within two microseconds of its moment, and never before.
    async fn a_sleep_is_two_microseconds_late() -> Outcome {
        needs_counted_time()?;
        // Once to have everything in place.
        lateness(Priority::Normal, Duration::from_micros(1)).await?;
        for least in [Duration::from_micros(1), Duration::from_millis(1)] {
            judge(lateness(Priority::Normal, least).await?, "a sleep")?;
            judge(lateness(Priority::High, least).await?, "an urgent sleep")?;
        }
        Ok(())
    }
}

kernel_test! {
    /// Each tick is due at its own multiple of an odd period, and comes within two microseconds.
    async fn an_interval_does_not_drift() -> Outcome {
        const PERIOD: Duration = Duration::from_nanos(50_017);
        needs_counted_time()?;
        let ticking = Spawn::new().pinned(CoreId::BOOT).start(async {
            let mut late = Vec::new();
            let first = Instant::now() + PERIOD;
            let mut interval = time::interval_at(first, PERIOD);
            for number in 0..TICKS {
                let due = interval.tick().await;
                let now = Instant::now();
                ensure!(due == first + PERIOD * number, "tick {number} was due at another moment");
                ensure!(now >= due, "tick {number} came early");
                late.push(now - due);
            }
            ensure_eq!(interval.missed(), 0, "ticks left out");
            Ok::<_, Failure>(late)
        })?;
        judge(ticking.await??, "a tick")
    }
}
