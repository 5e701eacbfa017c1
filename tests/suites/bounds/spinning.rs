//! How long those wait who share a core with a process that spins.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::sched::{Priority, Spawn, yield_now};
use magpie::stats;
use magpie::time::{self, Instant};
use magpie_tests::{Failure, ensure, kernel_test};

use crate::{SLACK, needs_counted_time, slice, within};

/// Runs `body` on the first core, beside so many processes there that never yield.
async fn beside_hogs<F>(hogs: usize, priority: Priority, body: F) -> Result<F::Output, Failure>
where
    F: Future<Output: Send> + Send + 'static,
{
    let stop = Arc::new(AtomicBool::new(false));
    let mut spinning = Vec::new();
    for _ in 0..hogs {
        let stop = stop.clone();
        spinning.push(Spawn::new().pinned(CoreId::BOOT).start(async move {
            while !stop.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
        })?);
    }
    let found = Spawn::new().pinned(CoreId::BOOT).priority(priority).start(body)?.await;
    stop.store(true, Ordering::Relaxed);
    for hog in spinning {
        if hog.await.is_err() {
            return Err("a hog crashed".into());
        }
    }
    found.map_err(|_| "the neighbour crashed".into())
}

/// The longest time between two turns of a process that only yields.
async fn longest_gap() -> Duration {
    let (mut longest, mut before) = (Duration::ZERO, Instant::now());
    for _ in 0..50 {
        yield_now().await;
        longest = longest.max(before.elapsed());
        before = Instant::now();
    }
    longest
}

/// The longest time between a timer's end and the turn it brings about.
async fn longest_delay() -> Duration {
    let mut longest = Duration::ZERO;
    for round in 0..50 {
        let pause = Duration::from_micros(3_000 + 130 * round);
        let began = Instant::now();
        time::sleep(pause).await;
        longest = longest.max(began.elapsed().saturating_sub(pause));
    }
    longest
}

kernel_test! {
    /// Each process that spins delays its neighbours by at most two slices.
    async fn neighbours_wait_two_slices_for_each_hog() -> Outcome {
        needs_counted_time()?;
        for hogs in [1, 2, 5] {
            let gap = beside_hogs(hogs, Priority::Normal, longest_gap()).await?;
            magpie::log::text!("beside {hogs} hogs a turn comes after {} us", gap.as_micros());
            within(gap, 2 * hogs as u32 * slice() + SLACK, &alloc::format!("gap beside {hogs} hogs"))?;
        }
        Ok(())
    }
}

kernel_test! {
    /// The same in turns: between two turns of its neighbour a process that never yields has one turn, so it is suspended
    /// at most once for each turn of the neighbour. Where time passes by itself a neighbour may be suspended, too.
    async fn a_neighbour_waits_for_one_turn_of_a_hog() -> Outcome {
        const TURNS: u64 = 50;
        needs_counted_time()?;
        let free = Arc::new(AtomicBool::new(false));
        let seen = free.clone();
        let pinned = Spawn::new().pinned(CoreId::BOOT);
        let hog = pinned.start(async move {
            while !seen.load(Ordering::Relaxed) {
                core::hint::spin_loop();
            }
        })?;
        let suspended = || stats::core(CoreId::BOOT).preemptions.get();
        let neighbour = pinned.start(async move {
            yield_now().await;
            let before = suspended();
            for _ in 0..TURNS {
                yield_now().await;
            }
            free.store(true, Ordering::Relaxed);
            suspended() - before
        })?;
        let Ok(suspensions) = neighbour.await else { return Err("the neighbour crashed".into()) };
        ensure!(hog.await.is_ok(), "the hog crashed");
        ensure!(suspensions <= TURNS, "{suspensions} suspensions during {TURNS} turns of the neighbour");
        ensure!(suspensions * 2 >= TURNS, "the hog had a turn {suspensions} times only");
        Ok(())
    }
}

kernel_test! {
    /// A `Max` process waits for the turn in progress alone, however many hogs there are.
    async fn the_most_urgent_waits_for_one_turn() -> Outcome {
        needs_counted_time()?;
        for hogs in [1, 5] {
            let delay = beside_hogs(hogs, Priority::Max, longest_delay()).await?;
            magpie::log::text!("beside {hogs} hogs a Max process is {} us late", delay.as_micros());
            within(delay, 2 * slice() + SLACK, &alloc::format!("delay beside {hogs} hogs"))?;
        }
        Ok(())
    }
}
