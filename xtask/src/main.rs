//! The host tool of this tree. Run it as `cargo xtask`; `cargo xtask help` lists the verbs. What a project of one's own needs as
//! well is in the library below (`tool/`).

mod build;
#[cfg(test)]
mod command_line_fuzz;
mod e2e;
mod face;
mod figures;
mod masked;
#[cfg(test)]
#[path = "../tool/src/memory_count.rs"]
mod memory_count;
mod mutants;
#[cfg(test)]
mod page_links;
#[cfg(test)]
mod page_samples;
// The one that boot's fuzzers draw from.
#[path = "../../boot/src/random.rs"]
mod random;
mod rooms;
#[cfg(test)]
mod same_lists;
mod testing;
mod verbs;

use clap::{Parser, Subcommand};
use magpie_xtask::{failure, machine, progress, setup, stream};
use std::path::Path;
use std::process::ExitCode;

/// Sets up, builds, runs and tests Magpie.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    #[command(flatten)]
    Shared(Box<magpie_xtask::verbs::Verb>),
    /// Run the tests: on the host, in the kernel on QEMU, end to end
    Test(verbs::test::Options),
    /// Run the benchmarks and print what one operation costs
    Bench(verbs::bench::Options),
    /// Run the proofs: model checkers with every mutant, litmus tests, miri, ThreadSanitizer
    Verify(verbs::verify::Options),
    /// Make a book of the guide in docs/, by mdBook
    Book(verbs::book::Options),
    /// Make a project of one's own, outside this tree
    New(verbs::new::Options),
    /// Check formatting, lints with warnings denied, the kernel's rooms, and examples in its docs
    Check(verbs::check::Options),
}

fn main() -> ExitCode {
    failure::end_quietly_when_unheard();
    build::set_root_of(Path::new(env!("CARGO_MANIFEST_DIR")));
    failure::exit(match CommandLine::parse().verb {
        Verb::Shared(verb) => magpie_xtask::verbs::execute(*verb),
        Verb::Test(options) => verbs::test::execute(&options),
        Verb::Bench(options) => verbs::bench::execute(&options),
        Verb::Verify(options) => verbs::verify::execute(&options),
        Verb::Book(options) => verbs::book::execute(&options),
        Verb::New(options) => verbs::new::execute(&options),
        Verb::Check(options) => verbs::check::execute(&options),
    })
}
