//! `cargo xtask verify`: the proofs of the concurrent core, in full.
//!
//! Every model and every mutant under loom and shuttle, thousands of seeds of the deterministic simulation of
//! scheduler and executor, the assembly's litmus tests under herd7, the models of liveness under spin, the
//! structures' tests under miri with several seeds and under ThreadSanitizer. `docs/verification.md` has
//! the table of which tool must reject which mutant; the models carry it in code. A tool that is not here
//! is skipped with the reason, and the last line printed is `N passed, N failed, N skipped`. The mutants are in a copy
//! of the kernel; with `--weave` it is made, for runs by hand.

use crate::failure::{FAILURE, SUCCESS};
use crate::mutants::write_copy;
use crate::testing::{
    Checker, Depth, Tally, run_litmus, run_liveness, run_miri, run_models, run_simulation,
    run_thread_sanitizer,
};
use anyhow::Result;
use clap::{Args, ValueEnum};

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
    /// Only make the copy of the kernel that holds every mutant, and print where its manifest is
    #[arg(long, conflicts_with_all = ["only", "seeds", "seed", "miri_seeds"])]
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
    let mut total = Tally::default();
    for &proof in Proof::value_variants() {
        if !options.only.is_empty() && !options.only.contains(&proof) {
            continue;
        }
        total.add(match proof {
            Proof::Loom => run_models(Checker::Loom, Depth::Full)?,
            Proof::Shuttle => run_models(Checker::Shuttle, Depth::Full)?,
            Proof::Simulation => run_simulation(options.seed, options.seeds, Depth::Full)?,
            Proof::Litmus => run_litmus()?,
            Proof::Liveness => run_liveness()?,
            Proof::Miri => run_miri(options.miri_seeds)?,
            Proof::Tsan => run_thread_sanitizer()?,
        });
    }
    for failure in &total.failures {
        println!("failed: {failure}");
    }
    println!("{} passed, {} failed, {} skipped", total.passed, total.failed(), total.skipped);
    Ok(if total.is_success() { SUCCESS } else { FAILURE })
}
