//! Runs the tests of an image, one after another, and reports each.
//!
//! Boot arguments: `filter=<substring of a name>`, `timeout=<seconds for one test>`, `after=<name>`: only the
//! tests that come after that one, which has stopped the whole machine when it ran before, `until=failure`: none
//! after one that fails, because what that leaves behind could fail the next; the host tool runs those in
//! another guest. A test that times out is left behind, suspended or waiting; without `until=failure` the next one
//! starts, and the scheduler keeps it from holding a core.

use alloc::vec::Vec;
use core::time::Duration;

use magpie::internals::console;
use magpie::{machine, sched, time};

use crate::limit::TEST_HANGS_AFTER;
use crate::{TESTS, Test};

enum Verdict {
    Passed,
    Failed(alloc::string::String),
}

/// Runs every test whose name matches. Returns whether all passed.
pub async fn run() -> bool {
    let filter = machine::argument("filter").unwrap_or("");
    let timeout = machine::argument("timeout").and_then(|seconds| seconds.parse().ok());
    let timeout = timeout.map_or(TEST_HANGS_AFTER, Duration::from_secs);
    let after = machine::argument("after").unwrap_or("");
    let goes_on = machine::argument("until") != Some("failure");
    let wanted = |test: &&Test| test.name.contains(filter) && test.name > after;
    let mut tests: Vec<&Test> = TESTS.iter().filter(wanted).collect();
    tests.sort_unstable_by_key(|test| test.name);
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    for test in tests {
        if let Some(reason) = unsuited(test) {
            console::notice(format_args!("@test skip {}: needs {reason}", test.name));
            skipped += 1;
            continue;
        }
        console::notice(format_args!("@test start {}", test.name));
        let begin = time::Instant::now();
        match run_one(test, timeout).await {
            Verdict::Passed => {
                console::notice(format_args!("@test ok {} {}", test.name, begin.elapsed().as_millis()));
                passed += 1;
            }
            Verdict::Failed(reason) => {
                console::notice(format_args!("@test fail {}: {}", test.name, reason));
                failed += 1;
                if !goes_on {
                    return false;
                }
            }
        }
    }
    console::notice(format_args!("@test done {passed} {failed} {skipped}"));
    failed == 0
}

/// Says that the running test is about to stop the kernel with a panic whose message contains `text`: then it has passed,
/// and the tests after it run in another guest. If it comes back instead it must fail by itself.
pub fn expect_panic(text: &str) {
    console::notice(format_args!("@test panics {text}"));
}

/// What the test needs that there is not.
fn unsuited(test: &Test) -> Option<alloc::string::String> {
    if machine::cores() < test.cores {
        return Some(alloc::format!("{} cores", test.cores));
    }
    test.machine.filter(|_| cfg!(not(target_os = "none"))).map(|why| alloc::format!("the machine: {why}"))
}

async fn run_one(test: &Test, timeout: Duration) -> Verdict {
    let handle = match sched::spawn((test.start)()) {
        Ok(handle) => handle,
        Err(error) => return Verdict::Failed(alloc::format!("not started: {error:?}")),
    };
    match time::background_timeout(timeout, handle).await {
        Ok(Ok(Ok(()))) => Verdict::Passed,
        Ok(Ok(Err(failure))) => Verdict::Failed(failure.0),
        Ok(Err(error)) => Verdict::Failed(alloc::format!("{error:?}: see the panic or register dump above")),
        Err(_) => Verdict::Failed(alloc::format!("no result within {} s", timeout.as_secs())),
    }
}

/// Ends a suite: the image's entry point, which runs every test declared in it.
#[macro_export]
macro_rules! suite {
    () => {
        $crate::magpie_boot::entry!(suite);

        async fn suite() -> $crate::magpie_boot::ExitCode {
            if $crate::runner::run().await {
                $crate::magpie_boot::ExitCode::Success
            } else {
                $crate::magpie_boot::ExitCode::Failure
            }
        }
    };
}
