//! How long those take to end who were killed, and have no turns because more urgent work keeps their core.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::future::pending;
use core::hint::spin_loop;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use magpie::arch::CoreId;
use magpie::sched::{JoinError, Priority, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{ensure_eq, kernel_test};

use crate::{SLACK, needs_counted_time, slice, within};

/// So many are looked at between two turns: `sched/run/ending.rs`.
const AT_ONCE: u32 = 4;

kernel_test! {
    /// Behind two hogs that are more urgent each four that were killed, suspended or waiting, end within two slices.
    async fn the_killed_end_behind_urgent_work() -> Outcome {
        needs_counted_time()?;
        let here = Spawn::new().pinned(CoreId::BOOT);
        let judge = here.priority(Priority::Max).start(async move {
            for count in [4_u32, 8, 16, 32] {
                let (begun, stop) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
                let mut victims = Vec::new();
                for number in 0..count {
                    let begun = begun.clone();
                    victims.push(here.priority(Priority::Low).start(async move {
                        begun.fetch_add(1, Ordering::AcqRel);
                        if number % 2 == 0 {
                            loop {
                                spin_loop();
                            }
                        }
                        pending::<()>().await
                    })?);
                }
                while begun.load(Ordering::Acquire) < count.into() {
                    time::sleep(slice()).await;
                }
                let hogs = (0..2).map(|_| {
                    let stop = stop.clone();
                    here.priority(Priority::High).start(async move {
                        while !stop.load(Ordering::Acquire) {
                            spin_loop();
                        }
                    })
                });
                let hogs = hogs.collect::<Result<Vec<_>, _>>()?;
                time::sleep(5 * slice()).await;
                // The turn in progress, besides, and the time between two looks of this one.
                let most = 2 * (count.div_ceil(AT_ONCE) + 2) * slice() + SLACK;
                let began = Instant::now();
                victims.iter().for_each(|victim| victim.process().kill());
                // Seldom: each look ends a hog's turn, and so helps.
                while !victims.iter().all(|victim| victim.process().is_done()) && began.elapsed() <= most {
                    time::sleep(2 * slice()).await;
                }
                let took = began.elapsed();
                stop.store(true, Ordering::Release);
                for hog in hogs {
                    hog.await?;
                }
                magpie::log::text!("{count} ends took {} us", took.as_micros());
                within(took, most, &alloc::format!("{count} ends behind urgent work"))?;
                for victim in victims {
                    ensure_eq!(victim.await, Err(JoinError::Killed), "how it ended");
                }
            }
            Ok(())
        })?;
        judge.await?
    }
}
