//! Instructions for each operation, or the time that cores which are held in step take for one, on several numbers of cores.
//!
//! For instructions QEMU runs all cores on one thread and lets a nanosecond pass for each instruction of any of them (`-icount
//! shift=0,sleep=off`). So virtual time is the sum of what all cores execute: a core that waits costs nothing, one that
//! spins or is woken for nothing does.
//!
//! The same image with the same list of benchmarks repeats its figures exactly. On several cores they are still a matter
//! of chance: who gets a message first depends on what ran before, so another list, or a change somewhere else, moves
//! some of them by a quarter. Against that a benchmark may be run several times in one boot, and the median taken.

use super::boot::Bench;
use super::measured::Measured;
use super::row::{Cell, Kind, Row};
use super::spec::Spec;
use crate::machine::Machine;
use crate::progress;
use anyhow::{Result, bail};

/// What the bar says meanwhile.
fn job(machine: &Machine) -> String {
    format!("benchmarks, {} core{}", machine.cores, if machine.cores == 1 { "" } else { "s" })
}

/// Runs benchmarks on machines, with these settings, for figures of a kind, each so many times.
pub fn count(
    bench: &mut Bench<'_>,
    machines: &[Machine],
    specs: &[Spec],
    arguments: &str,
    (kind, repeat): (Kind, u32),
) -> Result<Vec<Row>> {
    let row = |spec: &Spec| Row { label: spec.text().to_owned(), kind, variant: None, cells: Vec::new() };
    let mut rows: Vec<Row> = specs.iter().map(row).collect();
    progress::expect(machines.iter().map(job));
    for machine in machines {
        let _job = progress::job(job(machine));
        let figures = bench.run_often(machine, specs, arguments, repeat)?;
        for (row, runs) in rows.iter_mut().zip(figures) {
            let Some(measured) = Measured::median(runs) else { bail!("{} was not run", row.label) };
            row.cells.push(Cell { cores: machine.cores, measured, runs: repeat });
        }
    }
    Ok(rows)
}
