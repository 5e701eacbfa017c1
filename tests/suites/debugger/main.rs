//! What the end-to-end test of the debugger looks at: processes that are suspended on the first core, an actor whose mail waits, and a process
//! that sleeps.
#![cfg_attr(target_os = "none", no_std, no_main)]

extern crate alloc;

use alloc::vec::Vec;
use core::hint::black_box;
use core::sync::atomic::{AtomicBool, Ordering};
use core::time::Duration;

use magpie::actor::{Actor, Config, Context, Executor, Receive};
use magpie::arch::CoreId;
use magpie::sched::{JoinError, Priority, Spawn};
use magpie::time::{self, Instant};
use magpie_tests::{ensure_eq, kernel_test};

static IS_OVER: AtomicBool = AtomicBool::new(false);

/// It counts what it is told.
struct Counter(u64);

impl Actor for Counter {}

impl Receive<u64> for Counter {
    type Reply = u64;

    fn receive(&mut self, number: u64, _: &mut Context<Self>) -> u64 {
        self.0 += number;
        self.0
    }
}

/// Is nobody's turn to give up by itself: so it is suspended here.
#[inline(never)]
fn spins_until_all_is_over() -> u64 {
    let mut turns = 0;
    while !IS_OVER.load(Ordering::Relaxed) {
        turns = black_box(turns + 1);
    }
    turns
}

/// Where the debugger stops: the third hog on the same core has begun, so the others are suspended.
#[inline(never)]
#[unsafe(no_mangle)]
extern "C" fn the_debugger_stops_here(hogs: u64) -> u64 {
    black_box(hogs)
}

kernel_test! {
    async fn three_hogs_share_a_core() -> Outcome {
        let executor = Executor::start(&Config::default().priority(Priority::Low))?;
        let counter = executor.handle().spawn_pinned(CoreId::BOOT, Counter(0))?;
        // For longer than any host takes to come to the stop.
        let sleeper = Spawn::new().start(time::sleep(Duration::from_secs(3600)))?;
        let mut hogs = Vec::new();
        for number in 1..=3_u64 {
            hogs.push(Spawn::new().pinned(CoreId::BOOT).start(async move {
                if number == 3 {
                    for _ in 0..5 {
                        // Waits behind the hogs.
                        let _ = counter.send(1);
                    }
                    the_debugger_stops_here(number);
                    let end = Instant::now() + Duration::from_millis(20);
                    while Instant::now() < end {
                        black_box(());
                    }
                    IS_OVER.store(true, Ordering::Relaxed);
                }
                black_box(spins_until_all_is_over());
            })?);
        }
        for hog in hogs {
            hog.await?;
        }
        sleeper.process().kill();
        ensure_eq!(sleeper.await, Err(JoinError::Killed), "how the sleeper ended");
        ensure_eq!(counter.ask(0).await?, 5, "messages");
        executor.stop().await;
        Ok(())
    }
}

magpie_tests::suite!();
