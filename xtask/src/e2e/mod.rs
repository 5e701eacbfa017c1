//! End-to-end tests: this very tool is run as a user would run it, and what it prints and returns is
//! checked. Cases run beside each other, each with a folder of its own. They are no `#[test]`s because they need QEMU, and because they are counted with the in-kernel
//! suites.
//!
//! `tool` runs the tool, `fixture` builds a guest of a few instructions that needs no kernel, `pty` is a serial line, `terminal` and `tmux` are terminals; the cases are
//! in `bad_input`, `setup`, `guest`, `boot`, `book`, `trees`, `idle`, `bench`, `decode`, `kernel_panic`, `wordcount`, `pipeline`, `ledger`, `line`, `examples`, `first`, `rpi4`, `card`, `cluster`, `commands`, `console`, `debugger`, `disk`, `dump`, `echo`, `editor`, `push`, `monitor`, `progress`, `project`, `traces`, `live_view`, `watchdog` and `loaded`.

mod bad_input;
mod bench;
mod book;
mod boot;
mod card;
mod cluster;
mod commands;
mod console;
mod debugger;
mod decode;
mod disk;
mod dump;
mod echo;
mod editor;
mod examples;
mod first;
mod fixture;
mod guest;
mod idle;
mod kernel_panic;
mod ledger;
mod line;
mod live_view;
mod loaded;
mod monitor;
mod pipeline;
mod progress;
mod project;
mod pty;
mod push;
mod reference;
mod rpi4;
mod setup;
mod terminal;
mod text;
mod tmux;
mod tool;
mod traces;
mod trees;
mod watchdog;
mod wordcount;

use crate::build::Workspace;
use crate::progress::say;
use crate::testing::{ALONE, Plan, Tally, Task};
use anyhow::{Context, Result};
use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What a case may use.
struct Bench<'a> {
    workspace: &'a Workspace,
    /// A folder for this case's files.
    folder: PathBuf,
    /// A folder for what several cases use.
    common: PathBuf,
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

/// Cases that nothing may run beside: one makes the host busy.
const UNDISTURBED: &[&str] = &["loaded::cores_that_wait_for_each_other"];

fn all() -> impl Iterator<Item = &'static Case> {
    let groups = [
        bad_input::CASES,
        setup::CASES,
        guest::CASES,
        book::CASES,
        boot::CASES,
        traces::CASES,
        live_view::CASES,
        trees::CASES,
        idle::CASES,
        bench::CASES,
        decode::CASES,
        debugger::CASES,
        disk::CASES,
        dump::CASES,
        echo::CASES,
        editor::CASES,
        kernel_panic::CASES,
        watchdog::CASES,
        wordcount::CASES,
        pipeline::CASES,
        ledger::CASES,
        line::CASES,
        examples::CASES,
        first::CASES,
        rpi4::CASES,
        card::CASES,
        cluster::CASES,
        commands::CASES,
        console::CASES,
        push::CASES,
        monitor::CASES,
        progress::CASES,
        project::CASES,
        loaded::CASES,
    ];
    groups.into_iter().flatten()
}

fn wanted<'a>(filter: Option<&'a str>, plan: Plan) -> impl Iterator<Item = &'static Case> + 'a {
    all().filter(move |(name, _)| plan.has_case(name) && filter.is_none_or(|filter| name.contains(filter)))
}

/// The names of all cases that a plan has, or of those whose name contains `filter`.
pub fn names(filter: Option<&str>, plan: Plan) -> Vec<String> {
    wanted(filter, plan).map(|(name, _)| (*name).to_owned()).collect()
}

/// The cases to run.
pub struct Cases<'a> {
    /// The workspace.
    pub workspace: &'a Workspace,
    /// What their names contain.
    pub filter: Option<&'a str>,
    /// How long one guest may run.
    pub limit: Duration,
    /// Which there are.
    pub plan: Plan,
}

impl<'a> Cases<'a> {
    /// A task for each.
    pub fn tasks(&self) -> Result<Vec<Task<'a>>> {
        let common = self.workspace.target().join("e2e");
        fs::create_dir_all(&common).with_context(|| format!("cannot make {}", common.display()))?;
        let mut tasks = Vec::new();
        for (number, (name, case)) in wanted(self.filter, self.plan).enumerate() {
            // A number, for the path of a socket must be short.
            let folder = common.join(number.to_string());
            fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
            let bench =
                Bench { workspace: self.workspace, folder, common: common.clone(), limit: self.limit };
            let processors = if UNDISTURBED.contains(name) { ALONE } else { 1 };
            tasks.push(Task::new(format!("e2e {name}"), processors, move || Ok(run(name, *case, &bench))));
        }
        Ok(tasks)
    }
}

fn run(name: &str, case: fn(&Bench<'_>) -> Result<Outcome>, bench: &Bench<'_>) -> Tally {
    let mut tally = Tally::default();
    let began = Instant::now();
    let result = case(bench);
    let seconds = began.elapsed().as_secs_f64();
    match result {
        Ok(Outcome::Passed) => {
            say!("e2e {name}: ok ({seconds:.1} s)");
            tally.passed += 1;
        }
        Ok(Outcome::Skipped(reason)) => {
            say!("e2e {name}: skipped: {reason}");
            tally.skipped += 1;
        }
        Err(error) => {
            say!("e2e {name}: FAILED ({seconds:.1} s): {error:#}");
            tally.fail(format!("e2e {name}: {}", error.to_string().lines().next().unwrap_or_default()));
        }
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::{UNDISTURBED, all};
    use crate::testing::SLOW_CASES;
    use std::collections::BTreeSet;

    #[test]
    fn lists_of_cases_name_cases() {
        let names: BTreeSet<_> = all().map(|(name, _)| *name).collect();
        assert_eq!(names.len(), all().count(), "two cases have one name");
        for name in UNDISTURBED.iter().chain(SLOW_CASES) {
            assert!(names.contains(name), "there is no case {name}");
        }
    }
}
