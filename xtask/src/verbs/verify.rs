//! `cargo xtask verify`: the proofs of the concurrent core, in full.
//!
//! Every model and every mutant under loom and shuttle, thousands of seeds of the deterministic simulation of
//! scheduler and executor, the assembly's litmus tests under herd7, the models of liveness under spin, the
//! structures' tests under miri with several seeds and under ThreadSanitizer. `docs/verification.md` has
//! the table of which tool must reject which mutant; the models carry it in code. A tool that is not here
//! is skipped with the reason, and the last line printed is `N passed, N failed, N skipped`. The mutants are in a copy
//! of the kernel; with `--weave` it is made, for runs by hand.

use crate::build::{Workspace, check_output, write_whole};
use crate::failure::{FAILURE, SUCCESS};
use crate::mutants::write_copy;
use crate::progress::{self, Progress};
use crate::testing::{
    Checker, Depth, Tally, run_litmus, run_liveness, run_miri, run_models, run_simulation,
    run_thread_sanitizer,
};
use anyhow::Result;
use clap::{Args, ValueEnum};
use magpie_xtask::report::{Section, sheet, table};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// What `cargo xtask verify` accepts.
#[derive(Args)]
pub struct Options {
    /// Run these proofs and no others
    #[arg(long, value_name = "PROOF,...", value_delimiter = ',')]
    only: Vec<Proof>,
    /// How many seeds the simulation runs
    #[arg(long, value_name = "N", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(1..))]
    seeds: u64,
    /// The simulation's first seed; a seed that failed fails again
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// How many seeds miri runs each test with
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    miri_seeds: u32,
    /// Also write a page about the proofs, which any browser opens, into this file
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Only make the copy of the kernel that holds every mutant, and print where its manifest is
    #[arg(long, conflicts_with_all = ["only", "seeds", "seed", "miri_seeds", "report"])]
    weave: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Proof {
    Loom,
    Shuttle,
    Simulation,
    Litmus,
    Liveness,
    Miri,
    Tsan,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    if options.weave {
        println!("{}", write_copy()?.display());
        return Ok(SUCCESS);
    }
    options.report.as_deref().map(check_output).transpose()?;
    let mut total = Tally::default();
    let mut done = Vec::new();
    let is_wanted = |proof: &&Proof| options.only.is_empty() || options.only.contains(proof);
    let wanted = || Proof::value_variants().iter().filter(is_wanted).copied();
    let progress = Progress::begin(Workspace::load()?.target().join("verify-times.json"), true);
    progress::expect(wanted().map(name));
    for proof in wanted() {
        let _job = progress::job(name(proof));
        let began = Instant::now();
        let tally = match proof {
            Proof::Loom => run_models(Checker::Loom, Depth::Full)?,
            Proof::Shuttle => run_models(Checker::Shuttle, Depth::Full)?,
            Proof::Simulation => run_simulation(options.seed, options.seeds, Depth::Full)?,
            Proof::Litmus => run_litmus()?,
            Proof::Liveness => run_liveness()?,
            Proof::Miri => run_miri(options.miri_seeds)?,
            Proof::Tsan => run_thread_sanitizer()?,
        };
        done.push((proof, tally.clone(), began.elapsed()));
        total.add(tally);
    }
    progress.keep(options.only.is_empty());
    drop(progress);
    if let Some(path) = &options.report {
        write_whole(path, page(&done).as_bytes())?;
        eprintln!("xtask: a page about it is in {}", path.display());
    }
    for failure in &total.failures {
        println!("failed: {failure}");
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed(), total.skipped);
    Ok(if total.is_success() { SUCCESS } else { FAILURE })
}

fn name(proof: Proof) -> String {
    proof.to_possible_value().map_or(String::new(), |value| value.get_name().to_owned())
}

/// What each proof came to.
fn page(done: &[(Proof, Tally, Duration)]) -> String {
    let rows: Vec<Vec<String>> = done
        .iter()
        .map(|(proof, tally, took)| {
            let counts = [tally.passed, tally.failed() as u64, tally.skipped].map(|count| count.to_string());
            [vec![name(*proof)], counts.to_vec(), vec![format!("{:.0}", took.as_secs_f64())]].concat()
        })
        .collect();
    let failures: Vec<Vec<String>> =
        done.iter().flat_map(|(_, tally, _)| &tally.failures).map(|failure| vec![failure.clone()]).collect();
    let sum = |count: fn(&Tally) -> u64| done.iter().map(|(_, tally, _)| count(tally)).sum::<u64>();
    let (passed, failed) = (sum(|tally| tally.passed), sum(|tally| tally.failed() as u64));
    let summary = format!(
        "<p>{passed} passed, {failed} failed, {} skipped. A mutant passes by being rejected.</p>",
        sum(|tally| tally.skipped)
    );
    let sections = [
        Section {
            id: "proofs",
            heading: "Proofs",
            content: table(&["proof", "passed", "failed", "skipped", "seconds"], &rows),
        },
        Section {
            id: "failures",
            heading: "What failed",
            content: if failures.is_empty() { "<p>Nothing.</p>".into() } else { table(&["what"], &failures) },
        },
    ];
    sheet("Proofs", "proofs of Magpie", &summary, &sections)
}

#[cfg(test)]
mod tests {
    use super::{Proof, page};
    use crate::testing::Tally;
    use std::time::Duration;

    #[test]
    fn the_page_says_what_failed() {
        let failed = Tally { passed: 2, skipped: 1, failures: vec!["deque: <a mutant> lives".into()] };
        let page = page(&[(Proof::Loom, failed, Duration::from_secs(7))]);
        for part in [
            "2 passed, 1 failed, 1 skipped",
            "<td>loom</td><td>2</td><td>1</td><td>1</td><td>7</td>",
            "deque: &lt;a mutant&gt; lives",
        ] {
            assert!(page.contains(part), "no '{part}' in\n{page}");
        }
    }
}
