//! `cargo xtask test`: the host's unit tests, the in-kernel suites on QEMU, and the end-to-end tests.
//!
//! The last line printed is always `N passed, N failed` (with `, N skipped` where some were).

mod selection;

#[cfg(test)]
pub use selection::check_machines;

use crate::build::{Board, Workspace, host_tests};
use crate::e2e;
use crate::failure::{FAILURE, INTERRUPTED, SUCCESS, usage};
use crate::machine::{Gic, Size, catch_interrupts, interrupted};
use crate::progress::{self, Progress, say};
use crate::setup::{Install, OLDEST_FOR_VIRT, Qemu, ready_target};
use crate::testing::{
    Load, Plan, Tally, Task, host_suite_tasks, host_tasks, kernel_tasks, processors, run_tasks,
    run_tasks_beside, unit_build_job,
};
use anyhow::{Context, Result};
use clap::Args;
use selection::Selection;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// What `cargo xtask test` accepts.
#[derive(Args)]
pub struct Options {
    /// Run everything; without it, and without a word on what to run, what shows nothing new is left out
    #[arg(long)]
    all: bool,
    /// Run one in-kernel suite and nothing else
    #[arg(long, value_name = "SUITE", conflicts_with_all = ["host", "e2e"])]
    kernel: Option<String>,
    /// Run the host's unit tests and nothing else
    #[arg(long, conflicts_with = "e2e")]
    host: bool,
    /// Run the end-to-end tests and nothing else
    #[arg(long)]
    e2e: bool,
    /// Boot the suites on this board only [default: on virt, and once on the Raspberry Pi 4 with 4 cores]
    #[arg(long)]
    board: Option<Board>,
    /// Numbers of cores to boot each suite with on virt [default: 1,2,3,4,8,16]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    smp: Vec<u32>,
    /// Run the tests whose name contains this
    #[arg(long, value_name = "SUBSTRING")]
    filter: Option<String>,
    /// After how many seconds to end a guest [default: 1200; with --loaded 6000, with --soak 7200]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Repeat what can be repeated millions of times; takes an hour or more
    #[arg(long, conflicts_with_all = ["host", "e2e"])]
    soak: bool,
    /// Make the host busy meanwhile, with four loops for each of its processors
    #[arg(long)]
    loaded: bool,
    /// The seed of randomised tests
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// The guest's memory, like 512M or 2G
    #[arg(long, value_name = "SIZE", default_value = "1G")]
    memory: Size,
    /// The interrupt controller's version [default: 2 up to 8 cores, else 3]
    #[arg(long, value_name = "2|3")]
    gic: Option<Gic>,
    /// Enter the kernel at EL2
    #[arg(long)]
    el2: bool,
    /// More boot arguments, words of the form key=value
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Use the portable primitives in place of the hand-written exclusives
    #[arg(long)]
    portable: bool,
    /// Show what the guests print although nothing failed
    #[arg(long, short)]
    verbose: bool,
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    selection::check_machines(options)?;
    let filter = options.filter.as_deref();
    if filter.is_some_and(|filter| filter.contains(char::is_whitespace)) {
        return Err(usage("--filter cannot contain blanks; give one word of the test's name"));
    }
    let workspace = Workspace::load()?;
    check_suite(options, &workspace)?;

    // What a later part needs is set up before the first runs: better to stop now than in ten minutes.
    let install = Install::unless(options.no_install);
    let qemu = if options.host {
        None
    } else {
        ready_target(install)?;
        Some(Qemu::ready(OLDEST_FOR_VIRT, install)?)
    };
    catch_interrupts()?;

    let select = |plan| Selection::new(options, plan, &workspace, qemu.as_ref());
    let selection = select(plan(options))?;
    let left_out = match plan(options) {
        Plan::Plain => selection.left_out(&select(Plan::Whole)?),
        Plan::Whole => None,
    };
    let progress = Progress::begin(workspace.target().join("test-times.json"), !options.verbose);
    progress::expect(selection.names());
    let total = run(options, selection, &workspace)?;
    // What says nothing about a usual run is not kept.
    if filter.is_none() && !options.loaded && !options.soak && !interrupted() {
        progress.keep(options.names_nothing());
    }
    drop(progress);
    Ok(finish(&total, filter, left_out.as_deref()))
}

/// What is run: everything that a command names, and of the rest what a plain run takes.
fn plan(options: &Options) -> Plan {
    if options.all || !options.names_nothing() { Plan::Whole } else { Plan::Plain }
}

impl Options {
    /// Whether there is no word on what to run.
    fn names_nothing(&self) -> bool {
        let parts = self.kernel.is_some() || self.host || self.e2e || self.filter.is_some() || self.soak;
        let machines = self.board.is_some() || !self.smp.is_empty() || self.gic.is_some() || self.el2;
        !parts && !machines && !self.portable
    }
}

/// How many things are done at once for each of the host's processors. All of them wait for something now and then: a guest for a timer, a
/// case for a guest, a build for another's end. With one for each the processors did nothing for a quarter of the time. A soak keeps them busy.
const FOR_EACH_PROCESSOR: usize = 2;

/// Runs what needs one processor while the rest is built, for a compiler leaves some of them idle at every end of a build;
/// then what needs several, and the unit tests last. Beside the loops of a busy host nothing is built.
fn run(options: &Options, selection: Selection<'_>, workspace: &Workspace) -> Result<Tally> {
    let filter = options.filter.as_deref();
    let mut total = Tally::default();
    if let Some((count, reason)) = &selection.skipped {
        say!("kernel, raspi4b: skipped: {reason}");
        total.skipped += count;
    }
    let cases = e2e::Cases { workspace, filter, limit: limit(options), plan: selection.plan };
    let mut tasks = if selection.has_cases { cases.tasks()? } else { Vec::new() };
    // Last in the list, so that they go first where nothing is known of how long each takes: they take longest.
    if selection.has_proofs {
        tasks.extend(selection::proofs(options.seed.unwrap_or(1)));
    }
    let host = host_tasks(&selection.packages, filter);
    // With the guests' output on the terminal, one after another.
    let one_after_another = options.verbose;
    if options.loaded {
        let built = Mutex::new(Vec::new());
        total.add(build(selection, filter, &|more| {
            built.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
        })?);
        tasks.extend(built.into_inner().unwrap_or_else(PoisonError::into_inner));
        let (_load, loops) = Load::start();
        say!("the host is made busy with {loops} loops");
        let processors = if one_after_another { 1 } else { processors() };
        total.add(run_tasks(tasks, processors)?);
        total.add(run_tasks(host, processors)?);
    } else {
        let for_each = if options.soak { 1 } else { FOR_EACH_PROCESSOR };
        let at_once = if one_after_another { 1 } else { for_each * processors() };
        total.add(run_tasks_beside(tasks, at_once, |add| build(selection, filter, add))?);
        total.add(run_tasks(host, at_once)?);
    }
    Ok(total)
}

/// Builds everything, a build at a time, and hands on what can be run of it.
fn build<'a>(
    selection: Selection<'a>,
    filter: Option<&'a str>,
    add: &dyn Fn(Vec<Task<'a>>),
) -> Result<Tally> {
    let (mut total, tasks) = host_suite_tasks(&selection.host_boots, filter);
    add(tasks);
    for tests in selection.kernel {
        if !interrupted() {
            let (tally, tasks) = kernel_tasks(tests)?;
            total.add(tally);
            add(tasks);
        }
    }
    for package in &selection.packages {
        let _job = progress::job(unit_build_job(package));
        // What does not build is reported by the run of it.
        let mut command = host_tests(package, filter);
        progress::output(command.args(["--no-run", "--quiet"])).context("cargo cannot be started")?;
    }
    Ok(total)
}

/// Prints the failures again, in one place, and the last line.
fn finish(total: &Tally, filter: Option<&str>, left_out: Option<&str>) -> u8 {
    if !total.failures.is_empty() {
        println!("failures:");
        for failure in &total.failures {
            println!("  {failure}");
        }
    }
    if interrupted() {
        println!("interrupted; the rest was not run");
    } else if total.passed == 0 && total.failed() == 0 {
        match filter {
            Some(filter) if total.skipped == 0 => println!("no test's name contains '{filter}'"),
            _ => println!("no test was run"),
        }
    }
    if let Some(left_out) = left_out {
        println!("{left_out}");
    }
    println!("{total}");
    match (interrupted(), total.is_success()) {
        (true, _) => INTERRUPTED,
        (false, true) => SUCCESS,
        (false, false) => FAILURE,
    }
}

/// A suite that is asked for has to be there.
fn check_suite(options: &Options, workspace: &Workspace) -> Result<()> {
    let all = workspace.suites();
    match &options.kernel {
        Some(name) if !all.contains(&name.as_str()) => Err(match all.is_empty() {
            true => usage("there are no in-kernel suites in tests/"),
            false => usage(format!("there is no suite '{name}'; known suites: {}", all.join(", "))),
        }),
        _ => Ok(()),
    }
}

/// How long a guest may run. It only ends one that hangs: no test is about how fast the host is.
fn limit(options: &Options) -> Duration {
    let usual = match (options.soak, options.loaded) {
        (true, _) => 7200,
        (false, true) => 6000,
        (false, false) => 1200,
    };
    Duration::from_secs(options.timeout.unwrap_or(usual))
}

/// What a soak asks of the suites: the numbers that the kernel's promises are shown for.
const SOAK: &str = "steals=10000000 suspensions=100000 wakeups=2000000 work=10000000 restarts=1000 crashes=100000 \
    timeout=7000";

/// How long one test may take in a guest beside busy loops.
const LOADED_TEST_SECONDS: u32 = 3000;

/// The first of two arguments with one name counts, so the plan's come last.
fn boot_arguments(options: &Options, plan: Plan) -> String {
    let mut words = Vec::new();
    if options.soak {
        words.push(SOAK.to_owned());
    }
    if options.loaded && !options.soak {
        words.push(format!("timeout={LOADED_TEST_SECONDS}"));
    }
    words.extend(options.filter.as_ref().map(|filter| format!("filter={filter}")));
    words.extend(options.seed.map(|seed| format!("seed={seed}")));
    if !options.append.is_empty() {
        words.push(options.append.clone());
    }
    if !plan.amounts().is_empty() {
        words.push(plan.amounts().to_owned());
    }
    words.join(" ")
}
