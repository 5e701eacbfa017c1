//! A `High` turn is left for a timer that may wake something more urgent, and wakes an equal: the turn goes on before that, and neither is lost.

use alloc::sync::Arc;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::arch::CoreId;
use magpie::sched::{Priority, Spawn};
use magpie::time::Instant;
use magpie::{machine, time};
use magpie_tests::{Changed, Failure, HANGS_AFTER, amount, ensure, kernel_test};

const HIGH: Spawn = Spawn::new().priority(Priority::High);

fn spin_for(time: Duration) {
    let began = Instant::now();
    while began.elapsed() < time {
        core::hint::spin_loop();
    }
}

/// A time within a turn of those that sleep and spin here, another in each round.
const fn sometime(round: u64) -> Duration {
    Duration::from_micros(50 + round * 37 % 300)
}

const SPINS: Duration = Duration::from_micros(300);

/// From now on the timers of `High` processes preempt `High` turns.
async fn use_max() -> Result<(), Failure> {
    Spawn::new().priority(Priority::Max).start(async {})?.await?;
    Ok(())
}

kernel_test! {
    /// Of two that are equal the one that has a turn goes on: the other, which sleeps beside it, waits for the end of each turn.
    async fn an_equal_is_not_overtaken() -> Outcome {
        // The end of a slice would change their order, and put right what is lost.
        let _long = Changed::no_preemption()?;
        let rounds = amount("rounds", 300);
        use_max().await?;
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let in_turn = Arc::new(AtomicBool::new(false));
            let turn = in_turn.clone();
            let first = HIGH.pinned(core).start(async move {
                for round in 0..rounds {
                    time::sleep(sometime(round)).await;
                    turn.store(true, Ordering::Release);
                    spin_for(SPINS);
                    turn.store(false, Ordering::Release);
                }
            })?;
            let equal = HIGH.pinned(core).start(async move {
                for round in 0..rounds {
                    time::sleep(sometime(round * 5)).await;
                    ensure!(!in_turn.load(Ordering::Acquire), "it has overtaken a turn");
                }
                Ok::<(), Failure>(())
            })?;
            first.await?;
            equal.await??;
        }
        Ok(())
    }
}

kernel_test! {
    /// Two that are equal are met by each other's timers, and by their own.
    async fn neither_is_lost() -> Outcome {
        let _long = Changed::no_preemption()?;
        let rounds = amount("rounds", 300);
        use_max().await?;
        for core in (0..machine::cores()).filter_map(CoreId::new) {
            let spins = HIGH.pinned(core).start(async move {
                for round in 0..rounds {
                    time::sleep(sometime(round)).await;
                    spin_for(SPINS);
                }
            })?;
            let is_timed = HIGH.pinned(core).start(async move {
                for round in 0..rounds {
                    // Is over while it spins, which it has begun behind a sleep.
                    let limit = sometime(round) + SPINS / 4;
                    let _ = time::timeout(limit, async {
                        time::sleep(sometime(round)).await;
                        spin_for(SPINS);
                    })
                    .await;
                }
            })?;
            for process in [spins, is_timed] {
                match time::timeout(HANGS_AFTER, process).await {
                    Ok(ended) => ended?,
                    Err(_) => return Err("a process is lost".into()),
                }
            }
        }
        Ok(())
    }
}
