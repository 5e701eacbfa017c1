//! Runs the host's unit tests with cargo, a package at a time, so that one which does not build hides none
//! of the others.

use super::Tally;
use super::{ALONE, Task};
use crate::build::{ERLANG_PACKAGE, host_tests};
use crate::progress::{self, say};
use crate::setup::{Install, ready_erlang};
use anyhow::{Context, Result};
use std::time::Instant;

/// The unit tests of each package, all or those whose name contains `filter`.
pub fn host_tasks<'a>(packages: &[&'a str], filter: Option<&'a str>) -> Vec<Task<'a>> {
    let task = |package: &&'a str| {
        let package = *package;
        Task::new(format!("host {package}"), ALONE, move || run(package, filter))
    };
    packages.iter().map(task).collect()
}

/// What the building of them is called while it runs.
pub fn unit_build_job(package: &str) -> String {
    format!("building {package}'s unit tests")
}

fn run(package: &str, filter: Option<&str>) -> Result<Tally> {
    let began = Instant::now();
    let mut command = host_tests(package, filter);
    if package == ERLANG_PACKAGE {
        match ready_erlang(Install::Allowed) {
            Ok(_) => drop(command.args(["--", "--include-ignored"])),
            Err(reason) => say!("host {package}: without the tests that need Erlang: {reason}"),
        }
    }
    let output = progress::output(&mut command).context("cargo cannot be started; is Rust installed?")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut tally = parse_libtest(&text, package);
    if !output.status.success() && tally.failures.is_empty() {
        tally.fail(format!("host {package}: the tests did not build or did not run to their end"));
    }
    if tally.failed() > 0 {
        say!("{}", text.trim_end());
    }
    say!("host {package}: {tally} ({:.1} s)", began.elapsed().as_secs_f64());
    Ok(tally)
}

/// Reads what libtest prints, of one or several test programs.
pub fn parse_libtest(text: &str, package: &str) -> Tally {
    let mut tally = Tally::default();
    let mut failed = 0;
    for line in text.lines() {
        if let Some(result) = line.strip_prefix("test result: ") {
            tally.passed += number_before(result, " passed");
            tally.skipped += number_before(result, " ignored");
            failed += number_before(result, " failed");
        } else if let Some(name) =
            line.strip_prefix("test ").and_then(|rest| rest.strip_suffix(" ... FAILED"))
        {
            tally.fail(format!("host {package}, {name}: its output is above"));
        }
    }
    // A name may be lost among a test's own output; the count is not.
    while (tally.failed() as u64) < failed {
        tally.fail(format!("host {package}: a test whose name is in the output above"));
    }
    tally
}

/// The number that stands before a word.
fn number_before(text: &str, word: &str) -> u64 {
    let before = text.split(word).next().filter(|before| before.len() < text.len()).unwrap_or_default();
    before.rsplit(|c: char| !c.is_ascii_digit()).next().and_then(|digits| digits.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::parse_libtest as parse;

    #[test]
    fn adds_up_several_programs() {
        let text = "running 2 tests\ntest a ... ok\n\
                    test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 3 filtered out; finished in 0.00s\n\
                    test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s\n";
        assert_eq!(parse(text, "p").to_string(), "17 passed, 0 failed, 1 skipped");
    }

    #[test]
    fn names_failures_and_loses_none() {
        let text = "test deque::pop ... FAILED\n\
                    test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out\n";
        let tally = parse(text, "magpie");
        assert_eq!((tally.passed, tally.failed()), (1, 2));
        assert!(tally.failures[0].starts_with("host magpie, deque::pop"));
    }

    #[test]
    fn nothing_heard_is_nothing_counted() {
        assert_eq!(parse("error: could not compile", "p").to_string(), "0 passed, 0 failed");
    }
}
