//! The checks that also run under miri (`magpie::channel::checks`).

use magpie::channel::checks;
use magpie_tests::{Outcome, everywhere};

/// About how many messages each check sends, unless the boot argument `work` says otherwise.
const USUAL_WORK: u64 = 100_000;

async fn run(name: &str) -> Outcome {
    everywhere::run(checks::ALL, name, USUAL_WORK).await
}

magpie::channel_checks!(magpie_tests::everywhere, super::run);
