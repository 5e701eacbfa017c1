//! The host tool of a project of one's own, whole: its `xtask` is a `main` that calls [`main`].
//!
//! The project builds for the host unless told otherwise, so `cargo run` and `cargo test` are the host's. `cargo run` starts
//! this tool without a verb, which boots the application; of `cargo test`, a suite is a program that has the tool boot it in
//! the kernel ([`suite!`](crate::suite)).

mod bench;
mod check;
mod suite;
mod test;

pub use suite::run_suite;

use crate::build::{Features, Workspace, build_application, set_root_of};
use crate::failure::{self, usage};
use crate::setup::{Install, ready_target};
use crate::verbs::{self, runner};
use anyhow::Result;
use clap::{Args, Parser, Subcommand};
use std::path::Path;
use std::process::ExitCode;

/// Boots, tests and measures this project, and puts it on a board.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version)]
struct CommandLine {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Build the application and boot it on QEMU: what `cargo run` does
    Run(Run),
    #[command(flatten)]
    Shared(Box<verbs::Verb>),
    /// Boot the suites of tests in the kernel, on one core and on several
    Test(test::Options),
    /// Boot the benchmarks, and print how many instructions an operation takes
    Bench(bench::Options),
    /// Check formatting and lints, for this machine and for the kernel's
    Check(check::Options),
}

#[derive(Args)]
#[command(after_help = "The machine is set by the environment, as for the verb 'runner'.")]
struct Run {
    /// Boot arguments, words of the form key=value
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Carries out the command line. `package` is the folder of the package that calls it: `env!("CARGO_MANIFEST_DIR")`.
pub fn main(package: &str) -> ExitCode {
    failure::end_quietly_when_unheard();
    set_root_of(Path::new(package));
    let words = with_verb(std::env::args().collect());
    if let Some(misplaced) = misplaced(&words) {
        return failure::exit(Err(misplaced));
    }
    failure::exit(match CommandLine::parse_from(words).verb {
        Verb::Run(run) => boot(&run.arguments),
        Verb::Shared(verb) => verbs::execute(*verb),
        Verb::Test(options) => test::execute(&options),
        Verb::Bench(options) => bench::execute(&options),
        Verb::Check(options) => check::execute(&options),
    })
}

/// `cargo run` and `cargo run -- key=value` name no verb.
fn with_verb(mut words: Vec<String>) -> Vec<String> {
    let names_one = words.get(1).is_some_and(|word| word.starts_with('-') || !word.contains('='));
    if !names_one {
        words.insert(words.len().min(1), "run".to_owned());
    }
    words
}

/// An option in the verb's place, which is meant for QEMU: `cargo run -- --smp 8`.
fn misplaced(words: &[String]) -> Option<anyhow::Error> {
    let option = words.get(1).filter(|word| word.starts_with('-'))?;
    let is_own = ["-h", "--help", "-V", "--version"].contains(&option.as_str());
    let rest = words[1..].join(" ");
    (!is_own).then(|| {
        usage(format!(
            "{option} is no boot argument, which has the form key=value; options are taken by: cargo xtask qemu {rest}"
        ))
    })
}

fn boot(arguments: &[String]) -> Result<u8> {
    let workspace = Workspace::load()?;
    let name = workspace.chosen(None)?;
    let input = Some(workspace.application(name)?.join("input.txt")).filter(|path| path.exists());
    ready_target(Install::unless(runner::never_installs()))?;
    runner::boot(&build_application(name, Features::default())?, input, arguments, runner::USUAL_LIMIT)
}

#[cfg(test)]
mod tests {
    use super::{CommandLine, misplaced, with_verb};
    use clap::{CommandFactory, Parser};

    fn words(line: &str) -> Vec<String> {
        with_verb(line.split(' ').map(str::to_owned).collect())
    }

    #[test]
    fn without_a_verb_it_boots() {
        assert_eq!(words("xtask"), ["xtask", "run"]);
        assert_eq!(words("xtask load=1 seed=7"), ["xtask", "run", "load=1", "seed=7"]);
        assert_eq!(words("xtask bench --append a=b"), ["xtask", "bench", "--append", "a=b"]);
        assert_eq!(words("xtask --help"), ["xtask", "--help"]);
    }

    #[test]
    fn an_option_without_a_verb_is_told_where_it_belongs() {
        let said = misplaced(&words("xtask --smp 8")).unwrap().to_string();
        assert!(said.contains("cargo xtask qemu --smp 8"), "{said}");
        for line in ["xtask", "xtask a=b", "xtask --help", "xtask qemu --smp 2"] {
            assert!(misplaced(&words(line)).is_none(), "{line}");
        }
    }

    #[test]
    fn the_command_line_is_sound() {
        CommandLine::command().debug_assert();
        for line in ["xtask", "xtask a=b", "xtask qemu --smp 2", "xtask test --smp 1,4", "xtask image loader"]
        {
            assert!(CommandLine::try_parse_from(words(line)).is_ok(), "{line}");
        }
        assert!(CommandLine::try_parse_from(words("xtask nonesuch")).is_err());
    }
}
