//! Children that fail at random, under many supervisors: each is started as often as a model says.

use alloc::format;
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::sync::atomic::{AtomicU64, Ordering};

use magpie::supervise::{Backoff, Child, Shutdown, Supervisor};
use magpie::time::{self, Instant};
use magpie::{machine, sched};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, amount, ensure, ensure_eq, kernel_test};

use super::scene::{HOUR, patient};
use crate::ways::Way;

/// Fails in one of its first lives, as often as it is said.
async fn fails(lives: Arc<AtomicU64>, failures: u64, crashes: bool, mut shutdown: Shutdown) -> Outcome {
    let life = lives.fetch_add(1, Ordering::Relaxed);
    if life < failures {
        if life.is_multiple_of(3) {
            sched::yield_now().await;
        }
        if crashes {
            Way::ALL[life as usize % 3].crash();
        }
        return Err(Failure("as often as it should".into()));
    }
    shutdown.requested().await;
    Ok(())
}

/// Under one supervisor many others, each with a child that fails some random number of times beside one that does not: how often each
/// is started, and how often each supervisor gives up, can be said before.
///
/// A failure says the seed; with `seed=N` as a boot argument it is that one.
async fn random_failures(crashes: bool) -> Outcome {
    let given = machine::argument("seed").and_then(|text| text.parse().ok());
    let seed: u64 = given.unwrap_or_else(|| Instant::now().ticks());
    failures_of(seed, crashes).await.map_err(|failure| Failure(format!("seed={seed}: {}", failure.0)))
}

async fn failures_of(seed: u64, crashes: bool) -> Outcome {
    const SUPERVISORS: u64 = 24;
    const MOST: u64 = 3;
    let most_failures = amount("crashes", 200) / SUPERVISORS + 2;
    let random = seed | 1;
    let mut outer = patient(Supervisor::one_for_one());
    let (mut expected, mut lives) = (Vec::new(), Vec::new());
    for index in 0..SUPERVISORS {
        let failures =
            random.wrapping_mul(0x9e37_79b9_7f4a_7c15 ^ index << 7).rotate_left(23) % most_failures;
        let (failing, steady) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let (its, others) = (failing.clone(), steady.clone());
        let inner = Supervisor::rest_for_one()
            .backoff(Backoff::NONE)
            .restarts(MOST as usize, HOUR)
            .child(Child::process("steady", move |shutdown| fails(others.clone(), 0, false, shutdown)))
            .child(
                Child::process("failing", move |shutdown| fails(its.clone(), failures, crashes, shutdown))
                    .transient(),
            );
        outer = outer.child(Child::supervisor("inner", inner));
        // Each fourth failure is one too many.
        expected.push((failures + 1, failures / (MOST + 1)));
        lives.push((failing, steady));
    }
    let outer = outer.start()?;
    let all_begun = async {
        for ((failing, steady), (begins, given_up)) in lives.iter().zip(&expected) {
            while failing.load(Ordering::Relaxed) < *begins || steady.load(Ordering::Relaxed) < given_up + 1 {
                sched::yield_now().await;
            }
        }
    };
    let begun = time::background_timeout(HANGS_AFTER, all_begun).await;
    ensure!(begun.is_ok(), "children were not started as often as they should");
    let children = outer.children().await?;
    outer.stop().await?;
    for (index, ((failing, steady), (begins, given_up))) in lives.iter().zip(&expected).enumerate() {
        ensure_eq!(
            failing.load(Ordering::Relaxed),
            *begins,
            "lives of the child that fails, of supervisor {index}"
        );
        ensure_eq!(steady.load(Ordering::Relaxed), given_up + 1, "lives of its steady child");
        ensure_eq!(children[index].restarts, *given_up, "how often it gave up");
    }
    Ok(())
}

kernel_test! {
    async fn random_failures_are_followed_by_what_a_model_says() -> Outcome {
        random_failures(false).await
    }
}

kernel_test! {
    #[machine("isolation")]
    async fn random_crashes_are_followed_by_what_a_model_says() -> Outcome {
        random_failures(true).await
    }
}
