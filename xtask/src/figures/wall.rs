//! Wall clock, on several numbers of cores: named benchmarks, or those that something is compared with. Each figure is
//! the median of several runs; only ratios within one run of this tool mean anything.

use super::boot::Bench;
use super::measured::Measured;
use super::row::{Cell, Kind, Row};
use super::spec::Spec;
use crate::machine::Machine;
use anyhow::{Result, bail};

/// A comparison: benchmarks, each in several variants of the kernel's settings.
struct Comparison {
    benchmarks: &'static [&'static str],
    variants: &'static [Variant],
}

struct Variant {
    title: &'static str,
    arguments: &'static str,
}

const fn variant(title: &'static str, arguments: &'static str) -> Variant {
    Variant { title, arguments }
}

const COMPARISONS: [Comparison; 2] = [
    // What stealing mailboxes is for.
    Comparison {
        benchmarks: &["balance-one", "balance-multi"],
        variants: &[variant("no stealing", "steal=0"), variant("stealing", "steal=1")],
    },
    // What the schemes of dispatching processes differ in.
    Comparison {
        benchmarks: &["process-one", "process-each"],
        variants: &[
            variant("one queue", "sched.dispatch=0"),
            variant("no stealing", "sched.dispatch=1"),
            variant("stealing", "sched.dispatch=2"),
        ],
    },
];

/// Makes all comparisons: for each a list of rows, those of one benchmark after another, its variants in order.
pub fn compare(bench: &mut Bench<'_>, machines: &[Machine], repeat: u32) -> Result<Vec<Vec<Row>>> {
    let mut tables = Vec::new();
    for comparison in &COMPARISONS {
        let specs = comparison.benchmarks.iter().map(|name| Spec::parse(name)).collect::<Result<Vec<_>>>()?;
        tables.push(clock_variants(bench, machines, &specs, comparison.variants, (repeat, 1))?);
    }
    Ok(tables)
}

/// How often named benchmarks run in one boot, as the peers do in one process: in the first of these the emulator translates the code.
pub const RUNS_IN_A_BOOT: u32 = 3;

/// Runs benchmarks on machines, in so many boots.
pub fn clock(bench: &mut Bench<'_>, machines: &[Machine], specs: &[Spec], boots: u32) -> Result<Vec<Row>> {
    let mut rows = clock_variants(bench, machines, specs, &[variant("", "")], (boots, RUNS_IN_A_BOOT))?;
    rows.iter_mut().for_each(|row| row.variant = None);
    Ok(rows)
}

fn clock_variants(
    bench: &mut Bench<'_>,
    machines: &[Machine],
    specs: &[Spec],
    variants: &[Variant],
    (boots, runs_in_a_boot): (u32, u32),
) -> Result<Vec<Row>> {
    let row = |spec: &Spec, variant: &Variant| Row {
        label: spec.text().to_owned(),
        kind: Kind::Wall,
        variant: Some(variant.title),
        cells: Vec::new(),
    };
    let mut rows: Vec<Row> =
        specs.iter().flat_map(|spec| variants.iter().map(move |variant| row(spec, variant))).collect();
    for machine in machines {
        let mut runs: Vec<Vec<Measured>> = rows.iter().map(|_| Vec::new()).collect();
        // In turns, so that what else the host does meets all alike.
        for _ in 0..boots {
            for (index, variant) in variants.iter().enumerate() {
                let figures = bench.run_often(machine, specs, variant.arguments, runs_in_a_boot)?;
                let of_variant = runs.iter_mut().skip(index).step_by(variants.len());
                of_variant.zip(figures).for_each(|(runs, figures)| runs.extend(figures));
            }
        }
        for (row, runs) in rows.iter_mut().zip(runs) {
            let Some(measured) = Measured::median(runs) else { bail!("{} was not run", row.label) };
            row.cells.push(Cell { cores: machine.cores, measured, runs: boots * runs_in_a_boot });
        }
    }
    Ok(rows)
}
