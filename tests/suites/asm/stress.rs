//! A million operations of the deque and of the double swap on each core, and with stores that fail.
//!
//! `swap::keeps_the_table` checks the table at its end, so the million swaps are followed by a look at every
//! slot; a second run starts from another table.

use crate::cores::run;
use magpie_tests::kernel_test;

/// Operations on each core.
const MILLION: usize = 1_000_000;

kernel_test! {
    /// Each of a million items has one taker.
    #[cores(2)]
    async fn a_million_items_through_the_deque() -> Outcome {
        run("deque::one_taker_for_each_of_many", MILLION).await
    }
}

kernel_test! {
    /// The table holds each mailbox once after every million swaps.
    #[cores(2)]
    async fn a_million_swaps_on_each_core() -> Outcome {
        run("swap::keeps_the_table", MILLION).await
    }
}

#[cfg(feature = "forced-failure")]
kernel_test! {
    /// The same with every third store-exclusive failing.
    #[cores(2)]
    async fn stores_that_fail_lose_nothing() -> Outcome {
        use magpie::internals::arch::forced_failure;
        let before = forced_failure::forced();
        forced_failure::set_period(3);
        let mut outcome = run("deque::", MILLION / 50).await;
        if outcome.is_ok() {
            outcome = run("swap::", MILLION).await;
        }
        forced_failure::set_period(0);
        outcome?;
        magpie_tests::ensure!(forced_failure::forced() != before, "no failure was forced");
        Ok(())
    }
}
