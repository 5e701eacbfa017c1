//! Processes that end in the middle of their turns: one panics, one uses up its stack, one is killed. The parameter is how many rounds of the three.
//!
//! One operation is such an end. What it costs says little, because whoever is to be killed runs for some slices before; for how long interrupts are
//! masked meanwhile is of interest (`cargo xtask bench crashes:5 --masked`).

use alloc::boxed::Box;
use alloc::sync::Arc;
use core::hint;
use core::sync::atomic::{AtomicBool, Ordering};

use magpie::actor::ExecutorHandle;
use magpie::sched::{self, JoinError, Spawn};

use super::Go;
use crate::failed::Failed;
use crate::stopwatch;
use crate::verdict::expect_equal;

/// Ends in each round.
const ENDS: u64 = 3;

/// As [`super::Figure::prepare`].
pub fn prepare(_: &ExecutorHandle, parameters: &[u64]) -> Result<Go, Failed> {
    let rounds = parameters[0].max(1);
    Ok(Box::new(move || {
        stopwatch::begin(1);
        let measure = async move {
            let mut ended = 0;
            for _ in 0..rounds {
                ended += round().await.unwrap_or(0);
            }
            expect_equal("ends", ended, rounds * ENDS);
            stopwatch::done();
        };
        Spawn::new().start(measure).map_err(|_| Failed::Memory)?;
        Ok(rounds * ENDS)
    }))
}

/// How many have ended as they should.
async fn round() -> Option<u64> {
    let panicked = sched::spawn(async { panic!("on purpose") }).ok()?;
    let overflowed = sched::spawn(async { deeper(0) }).ok()?;
    let runs = Arc::new(AtomicBool::new(false));
    let told = runs.clone();
    let killed = sched::spawn(async move {
        told.store(true, Ordering::Relaxed);
        loop {
            hint::spin_loop();
        }
    })
    .ok()?;
    while !runs.load(Ordering::Relaxed) {
        sched::yield_now().await;
    }
    killed.process().kill();
    let ends = [
        matches!(panicked.await, Err(JoinError::Crashed)),
        matches!(overflowed.await, Err(JoinError::Crashed)),
        matches!(killed.await, Err::<(), _>(JoinError::Killed)),
    ];
    Some(ends.into_iter().map(u64::from).sum())
}

#[expect(unconditional_recursion, reason = "it uses up the stack")]
fn deeper(depth: u64) -> u64 {
    let here = hint::black_box([depth; 64]);
    deeper(here[0] + 1) + here[63]
}
