//! Nothing to do for ten seconds, or for as long as the boot argument `seconds` says: what waiting costs.
#![cfg_attr(target_os = "none", no_std, no_main)]

use core::time::Duration;

use magpie::ExitCode;
use magpie::{machine, time};

magpie::entry!(idle);

async fn idle() -> ExitCode {
    let seconds = machine::argument("seconds").and_then(|seconds| seconds.parse().ok()).unwrap_or(10);
    time::sleep(Duration::from_secs(seconds)).await;
    ExitCode::Success
}
