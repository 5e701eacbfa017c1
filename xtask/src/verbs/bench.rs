//! `cargo xtask bench`: boots the benchmark image and prints what one operation costs.
//!
//! Two kinds of figures. *Instructions per operation* on several numbers of cores (`--cores`), counted by QEMU
//! (`-icount shift=0`), all cores together: they do not depend on the host. *Wall clock* (`--smp`): comparisons of
//! stealing mailboxes and of the dispatch schemes of processes, or with `--wall` whatever is named; of those only the
//! ratios mean anything. `--in-step` is between the two: how long the named benchmarks take on cores that run at once, and of which each executes an
//! instruction in a nanosecond. `--sweep` tries settings of the kernel, by instructions.
//!
//! This file has the options, and prints. Which options fit together is in [`plan`]; how figures are got and shown, in
//! `figures/`.

mod plan;

use crate::build::{
    Features, Image, Workspace, build_application, build_step, check_output, write_flat, write_whole,
};
use crate::failure::{INTERRUPTED, SUCCESS};
use crate::figures::{self, Bench, Broken, Grid, Kind, Row, Spec};
use crate::machine::{Machine, catch_interrupts};
use crate::masked::{Stretch, Traced, trace};
use crate::progress::Progress;
use crate::setup::{Install, OLDEST_FOR_VIRT, Qemu, ready_target};
use anyhow::Result;
use clap::Args;
use plan::{Plan, Task};
use std::path::PathBuf;
use std::time::Duration;

/// What `cargo xtask bench` accepts.
#[derive(Args)]
pub struct Options {
    /// Benchmarks, with parameters after colons like thread-ring:100:200000 [default: all]
    #[arg(value_name = "BENCHMARK")]
    benchmarks: Vec<String>,
    /// Numbers of cores to count instructions on; 0 leaves that out [default: 1,2,4,8]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    cores: Option<Vec<u32>>,
    /// Numbers of cores for wall clock; 0 leaves that out [default: 2,4]
    #[arg(long, value_name = "N,...", value_delimiter = ',')]
    smp: Option<Vec<u32>>,
    /// Wall clock of the named benchmarks, in place of instructions
    #[arg(long)]
    wall: bool,
    /// How long the named benchmarks take on cores that execute an instruction a nanosecond, each, and are held in step: in place of
    /// instructions of all cores together. On Linux, with QEMU 9.1 or newer
    #[arg(long)]
    in_step: bool,
    /// Also show what the kernel did for each operation: turns, wake-ups, steals, waits
    #[arg(long)]
    activity: bool,
    /// Also show how the samples of latencies are spread
    #[arg(long)]
    histogram: bool,
    /// In place of figures, show for how long interrupts are masked and preemption is disabled at a time, and where: the
    /// named benchmarks are traced, instruction by instruction, so give them little to do
    #[arg(long)]
    masked: bool,
    /// Print one JSON document and nothing else
    #[arg(long)]
    json: bool,
    /// Also write a page about the figures, which any browser opens, into this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["wall", "masked", "sweep", "in_step"])]
    report: Option<PathBuf>,
    /// Values of a kernel setting to try, like sched.doze_us=0,20,100; several make a grid
    #[arg(long, value_name = "SETTING=N,...")]
    sweep: Vec<String>,
    /// How often to run each benchmark, in wall clock how many boots; the median is printed [default: 1, in wall clock and in step 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..100))]
    repeat: Option<u32>,
    /// Use the portable primitives in place of the hand-written exclusives
    #[arg(long)]
    portable: bool,
    /// Leave out all statistics, to see what counting costs
    #[arg(long)]
    uncounted: bool,
    /// With all events written down and none sent, to see what that costs
    #[arg(long, conflicts_with = "uncounted")]
    traced: bool,
    /// Boot arguments for every run, such as sched.dispatch=0
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// After how many seconds to end QEMU
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,
}

/// The package of the benchmark image.
const PACKAGE: &str = "bench";
/// How often benchmarks run in wall clock.
const WALL_RUNS: u32 = 3;

impl Options {
    fn counted_runs(&self) -> u32 {
        self.repeat.unwrap_or(1)
    }

    fn wall_runs(&self) -> u32 {
        self.repeat.unwrap_or(WALL_RUNS)
    }
}

/// What the fuzzer checks.
#[cfg(test)]
pub fn checked(options: &Options) -> Result<()> {
    Plan::of(options).map(drop)
}

fn cores_of(machines: &[Machine]) -> Vec<u32> {
    machines.iter().map(|machine| machine.cores).collect()
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    let plan = Plan::of(options)?;
    options.report.as_deref().map(check_output).transpose()?;
    let install = Install::unless(options.no_install);
    ready_target(install)?;
    let qemu = Qemu::ready(OLDEST_FOR_VIRT, install)?;
    let Options { portable, uncounted, traced, .. } = *options;
    let append = if traced { format!("{} trace=unsent", options.append) } else { options.append.clone() };
    let image = write_flat(&build_application(
        PACKAGE,
        Features { portable, uncounted, traced, ..Features::default() },
    )?)?;
    catch_interrupts()?;
    let limit = Duration::from_secs(options.timeout);
    if plan.task == Task::Masked {
        return masked(&plan, &qemu, &image, &append, limit).map(|()| SUCCESS);
    }
    let mut bench = Bench::new(&qemu, &image, &append, limit);
    let done = match &plan.task {
        Task::Sweep(grid) => sweep(options, &plan, grid, &mut bench),
        Task::Wall => wall(options, &plan, &mut bench),
        Task::InStep => in_step(options, &plan, &mut bench),
        Task::Measure | Task::Masked => measure(options, &plan, &mut bench),
    };
    match done {
        Err(error) if error.is::<Broken>() => Ok(INTERRUPTED),
        done => done.map(|()| SUCCESS),
    }
}

fn measure(options: &Options, plan: &Plan, bench: &mut Bench<'_>) -> Result<()> {
    let progress = Progress::begin(Workspace::load()?.target().join("bench-times.json"), !options.json);
    let mut rows =
        figures::count(bench, &plan.counted, &plan.specs, "", (Kind::Counted, options.counted_runs()))?;
    // How long it takes depends on what was named.
    if options.benchmarks.is_empty() {
        progress.keep(false);
    }
    drop(progress);
    if !options.json && !plan.counted.is_empty() {
        println!(
            "instructions per operation, all cores together (QEMU {}, -icount shift=0):",
            bench.machinery.qemu
        );
        print!("{}", figures::instructions(&rows, &cores_of(&plan.counted)));
        print_latencies(&rows);
        if options.histogram {
            print!("{}", figures::histograms(&rows));
        }
        print_activity(options, &rows);
    }
    if let Some(path) = &options.report {
        let page = figures::page(&rows, &cores_of(&plan.counted), &bench.machinery.qemu.to_string());
        write_whole(path, page.as_bytes())?;
        eprintln!("xtask: a page about it is in {}", path.display());
    }
    if !plan.clocked.is_empty() {
        for table in figures::compare(bench, &plan.clocked, options.wall_runs())? {
            if !options.json {
                println!("{}", wall_heading(options.wall_runs()));
                print!("{}", figures::comparison(&table));
            }
            rows.extend(table);
        }
    }
    if options.json {
        print!("{}", figures::document(&bench.machinery, &rows));
    }
    Ok(())
}

fn wall(options: &Options, plan: &Plan, bench: &mut Bench<'_>) -> Result<()> {
    let rows = figures::clock(bench, &plan.clocked, &plan.specs, options.wall_runs())?;
    if options.json {
        print!("{}", figures::document(&bench.machinery, &rows));
        return Ok(());
    }
    println!("{}", wall_heading(options.wall_runs() * figures::RUNS_IN_A_BOOT));
    print!("{}", figures::wall_clock(&rows, &cores_of(&plan.clocked)));
    print_activity(options, &rows);
    Ok(())
}

fn in_step(options: &Options, plan: &Plan, bench: &mut Bench<'_>) -> Result<()> {
    let plugin = build_step()?;
    let held = |machine: &Machine| Machine { in_step: Some(plugin.clone()), ..machine.clone() };
    let machines: Vec<_> = plan.counted.iter().map(held).collect();
    let runs = options.wall_runs();
    let rows = figures::count(bench, &machines, &plan.specs, "", (Kind::InStep, runs))?;
    if options.json {
        print!("{}", figures::document(&bench.machinery, &rows));
        return Ok(());
    }
    println!("ns per operation on cores held in step, an instruction a ns on each, medians of {runs}:");
    print!("{}", figures::in_step(&rows, &cores_of(&machines)));
    print_latencies(&rows);
    if options.histogram {
        print!("{}", figures::histograms(&rows));
    }
    print_activity(options, &rows);
    Ok(())
}

/// Traces the benchmarks, and shows the longest stretches with interrupts masked, or preemption disabled.
fn masked(plan: &Plan, qemu: &Qemu, image: &Image, append: &str, limit: Duration) -> Result<()> {
    for machine in &plan.counted {
        let arguments = format!("{} {append}", Spec::argument(&plan.specs));
        let Traced { masked, sections, loops } = trace(qemu, image, machine, &arguments, limit)?;
        print_stretches("interrupts masked", machine.cores, &masked);
        print_stretches("preemption disabled in a turn", machine.cores, &sections);
        print_stretches("the loop, between turns and waits", machine.cores, &loops);
    }
    Ok(())
}

fn print_stretches(what: &str, cores: u32, found: &[Stretch]) {
    const MOST_SHOWN: usize = 8;
    const MOST_FUNCTIONS: usize = 4;
    let s = if cores == 1 { "" } else { "s" };
    println!("{what} on {cores} core{s}, in instructions:");
    println!("{:>8} {:>8}  from, to, and where most of it is spent", "longest", "times");
    for Stretch { instructions, count, begin, end, spent } in found.iter().take(MOST_SHOWN) {
        println!("{instructions:>8} {count:>8}  {begin} to {end}");
        for (name, count) in spent.iter().take(MOST_FUNCTIONS) {
            println!("{count:>26}  {name}");
        }
    }
}

fn wall_heading(runs: u32) -> String {
    format!("wall clock, ns per operation, medians of {runs}; only the ratios mean anything:")
}

fn print_activity(options: &Options, rows: &[Row]) {
    if options.activity {
        println!("what the kernel did for each operation, all cores together:");
        print!("{}", figures::activity(rows));
    }
}

fn print_latencies(rows: &[Row]) {
    let table = figures::latencies(rows);
    if !table.is_empty() {
        println!("how late samples came, in instructions of all cores together:");
        print!("{table}");
    }
}

fn sweep(options: &Options, plan: &Plan, grid: &Grid, bench: &mut Bench<'_>) -> Result<()> {
    let progress = |what: String| eprintln!("xtask: {what}");
    let trials = figures::sweep(bench, &plan.counted, &plan.specs, grid, options.counted_runs(), progress)?;
    if options.json {
        print!("{}", figures::sweep_document(&bench.machinery, &trials));
        return Ok(());
    }
    println!("instructions per operation by those on one core, geometric mean of all benchmarks:");
    print!("{}", figures::sweep_table(&trials));
    if let Some(best) = trials.first() {
        println!("with {}:", best.settings);
        print!("{}", figures::instructions(&best.rows, &cores_of(&plan.counted)));
        print_activity(options, &best.rows);
    }
    Ok(())
}
