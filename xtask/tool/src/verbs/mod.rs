//! The verbs that every `cargo xtask` has, this tree's and a project's, one file each.

pub mod decode;
pub mod doctor;
pub mod flash;
pub mod image;
pub mod line;
pub mod monitor;
pub mod push;
pub mod qemu;
pub mod report;
pub mod runner;
pub mod rust_analyzer;
pub mod stats;
pub mod top;
pub mod trace;

use anyhow::Result;
use clap::Subcommand;

/// What every `cargo xtask` can do.
#[derive(Subcommand)]
pub enum Verb {
    /// Build an application and run it on QEMU
    Qemu(qemu::WithDump),
    /// Run an ELF on QEMU: what cargo calls for `cargo run` and `cargo test` of a kernel package
    Runner(runner::Options),
    /// Make the image of a bootable SD card
    Image(image::Options),
    /// Write an SD card, or copy the files onto one that is mounted
    Flash(flash::Options),
    /// Show what a board says over its serial port, decoded
    Monitor(monitor::Options),
    /// Be the network at the other end of a board's serial line
    Line(line::Options),
    /// Hand a kernel to the chain loader on a board, and show what it says
    Push(push::Options),
    /// Run an application on QEMU, and write down what happens on each core, for Perfetto
    Trace(trace::Options),
    /// Run an application on QEMU, and print what each core counts, now and then
    Stats(stats::Options),
    /// Run an application on QEMU, or listen to a board, and watch what each core does
    Top(top::Options),
    /// Run an application on QEMU, or take a recording, and write a page about what has happened
    Report(report::Options),
    /// Print what this machine has and lacks
    Doctor,
    /// Decode a recorded serial stream
    Decode(decode::Options),
    /// Describe the workspace to rust-analyzer: which code is for the kernel's target, and which for this machine
    RustAnalyzer(rust_analyzer::Options),
}

/// Runs one.
pub fn execute(verb: Verb) -> Result<u8> {
    match verb {
        Verb::Qemu(options) => qemu::execute(options),
        Verb::Runner(options) => runner::execute(options),
        Verb::Image(options) => image::execute(&options),
        Verb::Flash(options) => flash::execute(&options),
        Verb::Monitor(options) => monitor::execute(&options),
        Verb::Line(options) => line::execute(&options),
        Verb::Push(options) => push::execute(&options),
        Verb::Trace(options) => trace::execute(options),
        Verb::Stats(options) => stats::execute(options),
        Verb::Top(options) => top::execute(options),
        Verb::Report(options) => report::execute(options),
        Verb::Doctor => doctor::execute(),
        Verb::Decode(options) => decode::execute(&options),
        Verb::RustAnalyzer(options) => rust_analyzer::execute(&options),
    }
}
