//! `cargo xtask test`: the host's unit tests, the in-kernel suites on QEMU, and the end-to-end tests.
//!
//! The last line printed is always `N passed, N failed` (with `, N skipped` where some were).

use crate::build::{Board, Features, Workspace};
use crate::e2e;
use crate::failure::{FAILURE, INTERRUPTED, SUCCESS, usage};
use crate::machine::{Gic, Machine, Size, catch_interrupts, interrupted};
use crate::setup::{Install, OLDEST_FOR_RASPI4B, OLDEST_FOR_VIRT, Qemu, ready_target};
use crate::testing::{
    Checker, Depth, KernelTests, Tally, run_host_suites, run_host_tests, run_kernel_tests, run_models,
    run_simulation,
};
use anyhow::Result;
use clap::Args;
use std::panic::resume_unwind;
use std::thread;
use std::time::Duration;

/// What `cargo xtask test` accepts.
#[derive(Args)]
pub struct Options {
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
    /// After how many seconds to end a guest [default: 300; with --soak 7200]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// Repeat what can be repeated millions of times; takes an hour or more
    #[arg(long, conflicts_with_all = ["host", "e2e"])]
    soak: bool,
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
    let machines = machines(options)?;
    let filter = options.filter.as_deref();
    if filter.is_some_and(|filter| filter.contains(char::is_whitespace)) {
        return Err(usage("--filter cannot contain blanks; give one word of the test's name"));
    }
    let workspace = Workspace::load()?;
    let suites = suites(options, &workspace)?;
    let every = options.kernel.is_none() && !options.host && !options.e2e && !options.soak;

    // What a later part needs is set up before the first runs: better to stop now than in ten minutes.
    let install = Install::unless(options.no_install);
    let qemu = if options.host {
        None
    } else {
        ready_target(install)?;
        Some(Qemu::ready(OLDEST_FOR_VIRT, install)?)
    };
    catch_interrupts()?;

    let mut total = Tally::default();
    if every || options.host {
        total.add(run_host_tests(&workspace.host_packages(), filter)?);
        total.add(run_host_suites(filter)?);
        if filter.is_none() && !interrupted() {
            // Most of either is one long build, or one thread that searches: at once they take half the time.
            let seed = options.seed.unwrap_or(1);
            let (models, simulation) = thread::scope(|scope| {
                let models = scope.spawn(|| run_models(Checker::Loom, Depth::Bounded));
                let simulation = run_simulation(seed, SIMULATED_SEEDS, Depth::Bounded);
                (models.join(), simulation)
            });
            total.add(models.unwrap_or_else(|panic| resume_unwind(panic))?);
            total.add(simulation?);
        }
    }
    if let Some(qemu) = &qemu {
        let arguments = boot_arguments(options);
        for (board, machines) in [(Board::Virt, &machines), (Board::Rpi4, &vec![Machine::raspi4b()])] {
            if suites.is_empty() || interrupted() || !is_wanted(options, board) {
                continue;
            }
            if board == Board::Rpi4 && qemu.version < OLDEST_FOR_RASPI4B {
                let reason = format!("QEMU {} is older than {OLDEST_FOR_RASPI4B}", qemu.version);
                println!("kernel, raspi4b: skipped: {reason}");
                total.skipped += suites.len() as u64;
                continue;
            }
            total.add(run_kernel_tests(&KernelTests {
                qemu,
                suites: &suites,
                machines,
                arguments: &arguments,
                limit: limit(options),
                features: Features { board, portable: options.portable, ..Features::default() },
                verbose: options.verbose,
            })?);
        }
        if (every || options.e2e) && !interrupted() {
            total.add(e2e::run_all(&workspace, filter, limit(options))?);
        }
    }
    Ok(finish(&total, filter))
}

/// Prints the failures again, in one place, and the last line.
fn finish(total: &Tally, filter: Option<&str>) -> u8 {
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
    println!("{total}");
    match (interrupted(), total.is_success()) {
        (true, _) => INTERRUPTED,
        (false, true) => SUCCESS,
        (false, false) => FAILURE,
    }
}

/// Without `--board`, the Raspberry Pi is included unless options speak of another machine.
fn is_wanted(options: &Options, board: Board) -> bool {
    match options.board {
        Some(wanted) => wanted == board,
        None => board == Board::Virt || (options.smp.is_empty() && options.gic.is_none() && !options.el2),
    }
}

fn machines(options: &Options) -> Result<Vec<Machine>> {
    let machine = |&cores: &u32| {
        let mut machine = Machine::new(cores, options.memory, options.gic)?;
        machine.el2 = options.el2;
        Ok(machine)
    };
    let cores = if options.smp.is_empty() { DEFAULT_CORES } else { &options.smp };
    cores.iter().map(machine).collect()
}

/// The suites to run: none for `--host` and `--e2e`.
fn suites<'a>(options: &Options, workspace: &'a Workspace) -> Result<Vec<&'a str>> {
    let all = workspace.suites();
    match &options.kernel {
        Some(name) => match all.iter().find(|suite| *suite == name) {
            Some(suite) => Ok(vec![suite]),
            None if all.is_empty() => Err(usage("there are no in-kernel suites in tests/")),
            None => Err(usage(format!("there is no suite '{name}'; known suites: {}", all.join(", ")))),
        },
        None if options.host || options.e2e => Ok(Vec::new()),
        None => Ok(all),
    }
}

/// Numbers of cores to boot each suite with on `virt`.
const DEFAULT_CORES: &[u32] = &[1, 2, 3, 4, 8, 16];

/// How long a guest may run.
fn limit(options: &Options) -> Duration {
    Duration::from_secs(options.timeout.unwrap_or(if options.soak { 7200 } else { 300 }))
}

/// Seeds of the simulation in an ordinary run; `verify` takes thousands.
const SIMULATED_SEEDS: u64 = 300;

/// What a soak asks of the suites: the numbers that the kernel's promises are shown for.
const SOAK: &str = "steals=10000000 suspensions=100000 wakeups=2000000 work=10000000 restarts=1000 crashes=100000 \
    timeout=7000";

fn boot_arguments(options: &Options) -> String {
    let mut words = Vec::new();
    if options.soak {
        words.push(SOAK.to_owned());
    }
    words.extend(options.filter.as_ref().map(|filter| format!("filter={filter}")));
    words.extend(options.seed.map(|seed| format!("seed={seed}")));
    if !options.append.is_empty() {
        words.push(options.append.clone());
    }
    words.join(" ")
}
