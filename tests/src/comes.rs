//! Waiting for what a test has caused.

use magpie::sched;
use magpie::time::Instant;
use magpie_test::{Failure, HANGS_AFTER, ensure};

/// Gives turns to others until the condition holds.
///
/// # Errors
/// The complaint, if it does not come to hold in the time after which a test hangs.
pub async fn comes(condition: impl Fn() -> bool, complaint: &'static str) -> Result<(), Failure> {
    let began = Instant::now();
    while !condition() {
        ensure!(began.elapsed() < HANGS_AFTER, "{complaint}");
        sched::yield_now().await;
    }
    Ok(())
}
