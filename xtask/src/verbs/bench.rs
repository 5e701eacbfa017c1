//! `cargo xtask bench`: boots the benchmark image and prints what one operation costs.
//!
//! Two kinds of figures. *Instructions per operation* on one core, counted by QEMU (`-icount shift=0`): they do
//! not depend on the host, and a second run repeats them. *Wall clock* on several cores, for the benchmarks that stealing
//! mailboxes is for, with and without it, and for those that compare the dispatch schemes of processes, in turns; of
//! those only the ratios mean anything.

use crate::build::{Features, Image, build_example, write_flat};
use crate::failure::{FAILURE, INTERRUPTED, SUCCESS, usage};
use crate::figures::{GOALS, Measured, goal_of, median};
use crate::machine::{Ending, Guest, Machine, Size, catch_interrupts, run};
use crate::setup::{Install, OLDEST_FOR_VIRT, Qemu, ready_target};
use crate::stream::{Decoder, Notice, Output, show};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::io;
use std::time::Duration;

/// What `cargo xtask bench` accepts.
#[derive(Args)]
pub struct Options {
    /// Benchmarks, with parameters after colons like thread-ring:100:200000 [default: all, as the peers]
    #[arg(value_name = "BENCHMARK")]
    benchmarks: Vec<String>,
    /// Numbers of cores for the wall-clock part; 0 leaves it out
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [2, 4])]
    smp: Vec<u32>,
    /// How often to repeat each wall-clock figure; the median is printed
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..100))]
    repeat: u32,
    /// Use the portable primitives in place of the hand-written exclusives
    #[arg(long)]
    portable: bool,
    /// Leave out all statistics, to see what counting costs
    #[arg(long)]
    uncounted: bool,
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

/// A comparison in wall clock: benchmarks, each in several variants of the kernel's settings.
struct Comparison {
    benchmarks: &'static str,
    variants: &'static [Variant],
}

struct Variant {
    title: &'static str,
    arguments: &'static str,
}

const fn variant(title: &'static str, arguments: &'static str) -> Variant {
    Variant { title, arguments }
}

/// What stealing mailboxes is for.
const STEALING: Comparison = Comparison {
    benchmarks: "balance-one,balance-multi",
    variants: &[variant("no stealing", "steal=0"), variant("stealing", "steal=1")],
};
/// What the schemes of dispatching processes differ in.
const DISPATCH: Comparison = Comparison {
    benchmarks: "process-one,process-each",
    variants: &[
        variant("one queue", "sched.dispatch=0"),
        variant("no stealing", "sched.dispatch=1"),
        variant("stealing", "sched.dispatch=2"),
    ],
};

impl Comparison {
    fn heading(&self) -> String {
        let mut line = format!("{:<14} {:>6}", "benchmark", "cores");
        for variant in self.variants {
            line += &format!(" {:>14}", variant.title);
        }
        line + &format!(" {:>8}", "speed-up")
    }

    /// The speed-up is that of the last variant over the one before it.
    fn line(&self, name: &str, cores: u32, medians: &[f64]) -> String {
        let mut line = format!("{name:<14} {cores:>6}");
        for median in medians {
            line += &format!(" {median:>14.0}");
        }
        match medians {
            [.., before, last] => line + &format!(" {:>8.2}", before / last.max(f64::MIN_POSITIVE)),
            _ => line,
        }
    }
}

const MEMORY: Size = Size::from_mebibytes(1024);

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    for spec in &options.benchmarks {
        let name = spec.split(':').next().unwrap_or_default();
        if goal_of(name).is_none() {
            let known: Vec<_> = GOALS.iter().map(|goal| goal.name).collect();
            return Err(usage(format!(
                "there is no benchmark '{name}'; known benchmarks: {}",
                known.join(", ")
            )));
        }
    }
    let counting = Machine { icount: true, ..Machine::new(1, MEMORY, None)? };
    let cores = options.smp.iter().copied().filter(|&cores| cores > 0);
    let clocked = cores.map(|cores| Machine::new(cores, MEMORY, None)).collect::<Result<Vec<_>>>()?;

    let install = Install::unless(options.no_install);
    ready_target(install)?;
    let qemu = Qemu::ready(OLDEST_FOR_VIRT, install)?;
    let (portable, uncounted) = (options.portable, options.uncounted);
    let image =
        write_flat(&build_example(PACKAGE, Features { portable, uncounted, ..Features::default() })?)?;
    catch_interrupts()?;

    let limit = Duration::from_secs(options.timeout);
    let boot = |machine: &Machine, arguments: String| {
        let arguments = format!("{arguments} {}", options.append);
        boot(&qemu, &image, machine, arguments, limit)
    };
    let wanted = options.benchmarks.join(",");
    let Some(counted) = boot(&counting, format!("bench={wanted}"))? else { return Ok(INTERRUPTED) };
    println!("instructions per operation, one core (QEMU {}, -icount shift=0):", qemu.version);
    println!("{:<14} {:>10} {:>8} {:>8} {:>12}", "benchmark", "measured", "goal", "ratio", "best peer");
    for figure in &counted {
        println!("{}", figure.instructions_line());
    }
    if clocked.is_empty() || !options.benchmarks.is_empty() {
        return Ok(SUCCESS);
    }
    for table in [&STEALING, &DISPATCH] {
        println!(
            "wall clock, ns per operation, medians of {}; only the ratios mean anything:",
            options.repeat
        );
        println!("{}", table.heading());
        for machine in &clocked {
            let mut figures: Vec<Vec<Measured>> = table.variants.iter().map(|_| Vec::new()).collect();
            // In turns, so that what else the host does meets all alike.
            for _ in 0..options.repeat {
                for (variant, figures) in table.variants.iter().zip(&mut figures) {
                    let arguments = format!("bench={} {}", table.benchmarks, variant.arguments);
                    let Some(more) = boot(machine, arguments)? else { return Ok(INTERRUPTED) };
                    figures.extend(more);
                }
            }
            for name in table.benchmarks.split(',') {
                let medians: Vec<_> = figures.iter().map(|figures| median(figures, name)).collect();
                println!("{}", table.line(name, machine.cores, &medians));
            }
        }
    }
    Ok(SUCCESS)
}

/// Boots the image and returns its figures; `None` after Ctrl-C.
fn boot(
    qemu: &Qemu,
    image: &Image,
    machine: &Machine,
    arguments: String,
    limit: Duration,
) -> Result<Option<Vec<Measured>>> {
    let guest = Guest {
        machine: machine.clone(),
        image: image.clone(),
        input: None,
        tree: None,
        arguments,
        limit,
        commands: false,
    };
    let mut decoder = Decoder::for_elf(&guest.image.elf)?;
    let mut figures = Vec::new();
    let mut heard: Vec<u8> = Vec::new();
    let mut sink = |output: Output| match &output {
        Output::Notice(Notice::Bench(name, words)) => figures.extend(Measured::parse(name, words)),
        output => {
            let _ = show(output, &mut heard);
        }
    };
    let run = run(&qemu.path, &guest, &mut |bytes| decoder.push(bytes, &mut sink))?;
    decoder.finish(&mut sink);
    match run.ending {
        Ending::Status(SUCCESS) => Ok(Some(figures)),
        Ending::Interrupted => Ok(None),
        _ => {
            io::Write::write_all(&mut io::stderr(), &heard)
                .context("the guest's output cannot be written")?;
            bail!("the benchmark image failed (status {FAILURE}): {}", run.describe(limit))
        }
    }
}
