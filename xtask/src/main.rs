//! Magpie's host tool. Run it as `cargo xtask`; `cargo xtask help` lists the verbs.

mod build;
mod card;
#[cfg(test)]
mod command_line_fuzz;
mod e2e;
mod face;
mod failure;
mod figures;
mod machine;
mod masked;
#[cfg(test)]
mod memory_count;
mod mutants;
#[cfg(test)]
mod page_links;
mod progress;
// The one that boot's fuzzers draw from.
#[path = "../../boot/src/random.rs"]
mod random;
mod rooms;
mod serial;
mod setup;
mod stream;
mod testing;
mod verbs;

use clap::{Parser, Subcommand};
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
    /// Build an example and run it on QEMU
    Qemu(verbs::qemu::Options),
    /// Run an ELF on QEMU: what cargo calls for `cargo run` and `cargo test` of a kernel package
    Runner(verbs::runner::Options),
    /// Run the tests: on the host, in the kernel on QEMU, end to end
    Test(verbs::test::Options),
    /// Run the benchmarks and print what one operation costs
    Bench(verbs::bench::Options),
    /// Run the proofs: model checkers with every mutant, litmus tests, miri, ThreadSanitizer
    Verify(verbs::verify::Options),
    /// Make the image of a bootable SD card
    Image(verbs::image::Options),
    /// Write an SD card, or copy the files onto one that is mounted
    Flash(verbs::flash::Options),
    /// Show what a board says over its serial port, decoded
    Monitor(verbs::monitor::Options),
    /// Hand a kernel to the chain loader on a board, and show what it says
    Push(verbs::push::Options),
    /// Make a project of one's own, outside this tree
    New(verbs::new::Options),
    /// Check formatting, lints with warnings denied, the kernel's rooms, and examples in its docs
    Check(verbs::check::Options),
    /// Print what this machine has and lacks
    Doctor,
    /// Decode a recorded serial stream
    Decode(verbs::decode::Options),
}

fn main() -> ExitCode {
    failure::end_quietly_when_unheard();
    let result = match CommandLine::parse().verb {
        Verb::Qemu(options) => verbs::qemu::execute(options),
        Verb::Runner(options) => verbs::runner::execute(options),
        Verb::Test(options) => verbs::test::execute(&options),
        Verb::Bench(options) => verbs::bench::execute(&options),
        Verb::Verify(options) => verbs::verify::execute(&options),
        Verb::Image(options) => verbs::image::execute(&options),
        Verb::Flash(options) => verbs::flash::execute(&options),
        Verb::Monitor(options) => verbs::monitor::execute(&options),
        Verb::Push(options) => verbs::push::execute(&options),
        Verb::New(options) => verbs::new::execute(&options),
        Verb::Check(options) => verbs::check::execute(&options),
        Verb::Doctor => verbs::doctor::execute(),
        Verb::Decode(options) => verbs::decode::execute(&options),
    };
    ExitCode::from(result.unwrap_or_else(|error| {
        if !failure::is_unheard(&error) {
            eprintln!("xtask: {error:#}");
        }
        failure::status_of(&error)
    }))
}
