//! End-to-end tests: this very tool is run as a user would run it, and what it prints and returns is
//! checked. They are no `#[test]`s because they need QEMU, and because they are counted with the in-kernel
//! suites.
//!
//! `tool` runs the tool, `fixture` builds a guest of a few instructions that needs no kernel; the cases are
//! in `bad_input`, `setup`, `guest`, `boot`, `trees`, `idle`, `bench`, `decode`, `kernel_panic`, `wordcount`, `rpi4`, `card`, `commands`, `push` and `monitor`.

mod bad_input;
mod bench;
mod boot;
mod card;
mod commands;
mod decode;
mod fixture;
mod guest;
mod idle;
mod kernel_panic;
mod monitor;
mod push;
mod reference;
mod rpi4;
mod setup;
mod text;
mod tool;
mod trees;
mod wordcount;

use crate::build::Workspace;
use crate::testing::Tally;
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a case may use.
struct Bench<'a> {
    workspace: &'a Workspace,
    /// A folder for the cases' files.
    folder: PathBuf,
    /// How long one guest may run.
    limit: Duration,
}

/// How a case ended that did not fail.
enum Outcome {
    /// It passed.
    Passed,
    /// It cannot run here, for this reason.
    Skipped(String),
}

type Case = (&'static str, fn(&Bench<'_>) -> Result<Outcome>);

/// Runs all cases, or those whose name contains `filter`.
pub fn run_all(workspace: &Workspace, filter: Option<&str>, limit: Duration) -> Result<Tally> {
    let folder = workspace.target().join("e2e");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    let bench = Bench { workspace, folder, limit };
    let groups = [
        bad_input::CASES,
        setup::CASES,
        guest::CASES,
        boot::CASES,
        trees::CASES,
        idle::CASES,
        bench::CASES,
        decode::CASES,
        kernel_panic::CASES,
        wordcount::CASES,
        rpi4::CASES,
        card::CASES,
        commands::CASES,
        push::CASES,
        monitor::CASES,
    ];
    let mut tally = Tally::default();
    for (name, case) in groups.into_iter().flatten() {
        if filter.is_some_and(|filter| !name.contains(filter)) || crate::machine::interrupted() {
            continue;
        }
        let began = Instant::now();
        let result = case(&bench);
        let seconds = began.elapsed().as_secs_f64();
        match result {
            Ok(Outcome::Passed) => {
                println!("e2e {name}: ok ({seconds:.1} s)");
                tally.passed += 1;
            }
            Ok(Outcome::Skipped(reason)) => {
                println!("e2e {name}: skipped: {reason}");
                tally.skipped += 1;
            }
            Err(error) => {
                println!("e2e {name}: FAILED ({seconds:.1} s): {error:#}");
                tally.fail(format!("e2e {name}: {}", error.to_string().lines().next().unwrap_or_default()));
            }
        }
    }
    Ok(tally)
}
