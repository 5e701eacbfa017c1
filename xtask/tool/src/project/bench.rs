//! A project's `cargo xtask bench`: boots its benchmarks with instructions counted, and shows what an operation takes.
//!
//! A benchmark is a suite too: a `[[bench]]` with `harness = false` whose tests report figures by `magpie_test::measured`. QEMU
//! runs all cores on one thread, and virtual time passes by a nanosecond for each instruction of any of them, so a figure does
//! not depend on the host.

use crate::build::{Executable, Workspace, build_benches, write_flat};
use crate::failure::{FAILURE, INTERRUPTED, SUCCESS, usage};
use crate::machine::{Ending, Guest, Machine, Size, catch_interrupts, run};
use crate::setup::{Install, OLDEST_FOR_VIRT, Qemu, ready_target};
use crate::stream::{Decoder, Notice, Output, show};
use anyhow::Result;
use clap::{Args, Parser};
use std::io::{self, Write};
use std::time::Duration;

/// What it accepts.
#[derive(Args)]
pub struct Options {
    /// Run what has this in its name [default: all]
    filter: Option<String>,
    /// Numbers of cores to count instructions on
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_values_t = [1, 2, 4])]
    cores: Vec<u32>,
    /// Boot arguments for every run, words of the form key=value
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// After how many seconds to end QEMU
    #[arg(long, value_name = "SECONDS", default_value_t = 300, value_parser = clap::value_parser!(u64).range(1..))]
    timeout: u64,
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,
}

const MEMORY: Size = Size::from_mebibytes(512);

#[derive(Parser)]
struct Usual {
    #[command(flatten)]
    options: Options,
}

/// What `cargo bench` does: all of it. Words behind `--` are meant for other harnesses.
pub fn usual() -> Result<u8> {
    let mut options = Usual::parse_from(["bench"]).options;
    options.no_install = crate::verbs::runner::never_installs();
    execute(&options)
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    let machine = |cores: &u32| Ok(Machine { icount: true, ..Machine::new(*cores, MEMORY, None)? });
    let machines: Vec<Machine> = options.cores.iter().map(machine).collect::<Result<_>>()?;
    let workspace = Workspace::load()?;
    let benches = workspace.benches();
    if benches.is_empty() {
        return Err(usage(
            "there are no benchmarks: a [[bench]] with harness = false that ends with magpie_test::suite!(); and \
             reports by magpie_test::measured",
        ));
    }
    let install = Install::unless(options.no_install);
    ready_target(install)?;
    let qemu = Qemu::ready(OLDEST_FOR_VIRT, install)?;
    catch_interrupts()?;
    let mut table = Table::default();
    for (package, name) in benches {
        for built in build_benches(package, &[name])? {
            for (column, machine) in machines.iter().enumerate() {
                match measure(options, &qemu, &built, machine)? {
                    Measured::Figures(figures) => table.add(column, figures),
                    Measured::Failed => return Ok(FAILURE),
                    Measured::Interrupted => return Ok(INTERRUPTED),
                }
            }
        }
    }
    if table.rows.is_empty() {
        match &options.filter {
            Some(filter) => eprintln!("xtask: no benchmark's name contains '{filter}'"),
            None => eprintln!("xtask: nothing was measured: magpie_test::measured reports a figure"),
        }
        return Ok(FAILURE);
    }
    println!("instructions per operation, all cores together (QEMU {}, -icount shift=0):", qemu.version);
    print!("{}", table.text(&options.cores));
    Ok(SUCCESS)
}

/// A benchmark's name, and instructions for one operation.
type Figure = (String, f64);

enum Measured {
    Figures(Vec<Figure>),
    Failed,
    Interrupted,
}

/// Boots benchmarks on a machine. What they print is shown if they fail.
fn measure(options: &Options, qemu: &Qemu, bench: &Executable, machine: &Machine) -> Result<Measured> {
    let filter = options.filter.as_ref().map(|filter| format!("filter={filter}"));
    let words: Vec<_> = filter.into_iter().chain([options.append.clone()]).collect();
    let guest = Guest {
        arguments: words.join(" ").trim().to_owned(),
        ..Guest::new(machine.clone(), write_flat(&bench.path)?, Duration::from_secs(options.timeout))
    };
    let mut decoder = Decoder::for_elf(&guest.image.elf)?;
    let (mut figures, mut heard) = (Vec::new(), Vec::new());
    let mut sink = |output: Output| {
        if let Output::Notice(Notice::Bench(name, words)) = &output {
            figures.extend(each(words).map(|each| (name.clone(), each)));
        }
        // It goes into a vector, which takes everything.
        let _ = show(&output, &mut heard);
    };
    let run = run(&qemu.path, &guest, &mut |bytes| decoder.push(bytes, &mut sink))?;
    decoder.finish(&mut sink);
    match run.ending {
        Ending::Interrupted => Ok(Measured::Interrupted),
        Ending::Status(0) => Ok(Measured::Figures(figures)),
        _ => {
            // Where nobody reads it, the status says enough.
            let _ = io::stderr().write_all(&heard);
            eprintln!("xtask: {} on {} cores: {}", bench.name, machine.cores, run.describe(guest.limit));
            Ok(Measured::Failed)
        }
    }
}

/// Nanoseconds, which are instructions, for one operation.
fn each(words: &str) -> Option<f64> {
    let number = |key: &str| {
        let value = words.split_whitespace().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        value?.parse::<u64>().ok()
    };
    let operations = number("ops").filter(|&operations| operations > 0)?;
    Some(number("ns")? as f64 / operations as f64)
}

/// A row for each benchmark, a column for each number of cores.
#[derive(Default)]
struct Table {
    rows: Vec<(String, Vec<Option<f64>>)>,
}

impl Table {
    fn add(&mut self, column: usize, figures: Vec<Figure>) {
        for (name, each) in figures {
            let place = self.rows.iter().position(|(row, _)| *row == name).unwrap_or_else(|| {
                self.rows.push((name, Vec::new()));
                self.rows.len() - 1
            });
            let cells = &mut self.rows[place].1;
            cells.resize(cells.len().max(column + 1), None);
            cells[column] = Some(each);
        }
    }

    fn text(&self, cores: &[u32]) -> String {
        let heading = |cores: &u32| format!("{cores} core{}", if *cores == 1 { "" } else { "s" });
        let width = self.rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
        let line = |name: &str, cells: Vec<String>| {
            let cells: String = cells.iter().map(|cell| format!(" {cell:>10}")).collect();
            format!("{name:<width$}{cells}\n")
        };
        let mut text = line("", cores.iter().map(heading).collect());
        for (name, cells) in &self.rows {
            let shown = |column| match cells.get(column).copied().flatten() {
                Some(each) if each < 100.0 => format!("{each:.1}"),
                Some(each) => format!("{each:.0}"),
                None => "-".to_owned(),
            };
            text.push_str(&line(name, (0..cores.len()).map(shown).collect()));
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::{Table, each};

    #[test]
    fn a_figure_is_read_or_left_out() {
        assert_eq!(each("ops=2 ns=301"), Some(150.5));
        for damaged in ["", "ops=0 ns=1", "ops=1", "ops=x ns=1"] {
            assert_eq!(each(damaged), None, "{damaged}");
        }
    }

    #[test]
    fn rows_have_a_cell_for_each_machine() {
        let mut table = Table::default();
        table.add(0, vec![("ask".into(), 150.5), ("tell".into(), 42.25)]);
        table.add(1, vec![("ask".into(), 200.0)]);
        assert_eq!(
            table.text(&[1, 2]),
            "         1 core    2 cores\nask         150        200\ntell       42.2          -\n"
        );
    }
}
