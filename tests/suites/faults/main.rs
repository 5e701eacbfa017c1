//! Faults: thousands of crashes of every kind at random points, under load, with stealing, while cores go and come; each watched, and
//! each restart predicted. Then memory that is refused at random.
//!
//! Everything that is random comes from one seed, the boot argument `seed`, which each test prints. The scheduler's own choices do not
//! repeat. How many crashes is said by the boot argument `crashes`; `cargo xtask test --soak` asks for 10^5.
#![no_std]
#![no_main]

extern crate alloc;

mod innocents;
mod ledger;
mod links;
mod misuse;
mod model;
mod moments;
mod rounds;
mod storm;
mod trees;
mod unrest;
mod victims;
mod watchers;
mod ways;

use magpie::actor::{Actor, Config, Executor, Limits, NotSpawned};
use magpie::log::text;
use magpie::{sched, time};
use magpie_tests::{Failure, HANGS_AFTER, Outcome, amount, ensure_eq};

magpie_tests::suite!();

/// The seed of this run. Printed, so that a failure can be tried again.
fn seed() -> u64 {
    let seed = amount("seed", 1);
    text!("seed={seed}");
    seed
}

/// Waits until that holds.
async fn until(what: &str, holds: impl Fn() -> bool) -> Outcome {
    let waiting = async {
        while !holds() {
            sched::yield_now().await;
        }
    };
    time::background_timeout(HANGS_AFTER, waiting)
        .await
        .map_err(|_| Failure(alloc::format!("it does not come to hold: {what}")))
}

/// Nobody that is counted by itself has left what counts behind: as many can be so again as ever.
async fn all_meters_are_free() -> Outcome {
    const ALL: usize = 4095;
    struct Idle;
    impl Actor for Idle {}
    let executor = Executor::start(&Config::default())?;
    let mut count = 0;
    let error = loop {
        match executor.handle().spawn_limited(Idle, Limits::new()) {
            Ok(_) => count += 1,
            Err(error) => break error.without_actor(),
        }
    };
    executor.stop().await;
    ensure_eq!(
        (count, error),
        (ALL, NotSpawned::NoMeter(())),
        "how many can be counted by themselves, and why no more"
    );
    Ok(())
}
