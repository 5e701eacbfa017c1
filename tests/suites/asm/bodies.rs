//! The structures' checks, each structure as one test.

use crate::cores::run;
use magpie_tests::kernel_test;

/// Operations on each core; the host's tests do as many.
const WORK: usize = 20_000;

kernel_test! {
    /// The deque keeps its order and gives each item to one taker.
    async fn deque() -> Outcome { run("deque::", WORK).await }
}

kernel_test! {
    /// Chains keep their order.
    async fn chain() -> Outcome { run("chain::", WORK).await }
}

kernel_test! {
    /// The inbox loses nothing.
    async fn inbox() -> Outcome { run("inbox::", WORK / 4).await }
}

kernel_test! {
    /// The overflow list loses nothing.
    async fn overflow() -> Outcome { run("overflow::", WORK / 4).await }
}

kernel_test! {
    /// The double swap keeps the table.
    async fn swap() -> Outcome { run("swap::", WORK).await }
}

kernel_test! {
    /// One holder at a time.
    async fn spin_lock() -> Outcome { run("spin_lock::", WORK / 4).await }
}

kernel_test! {
    /// No wake-up is lost.
    async fn idle_flag() -> Outcome { run("idle_flag::", WORK / 4).await }
}
