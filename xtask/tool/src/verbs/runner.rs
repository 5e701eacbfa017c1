//! `cargo xtask runner ELF [ARGS]`: what cargo calls for `cargo run` and `cargo test` of a kernel package.
//!
//! The command line belongs to cargo and the image, so the machine is set by environment variables.

use crate::build::write_flat;
use crate::failure::usage;
use crate::machine::{Gic, Guest, Machine, Size};
use crate::setup::{Install, OLDEST_FOR_VIRT, Qemu};
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

/// What `cargo xtask runner` accepts.
#[derive(Args)]
#[command(
    after_help = "Environment: MAGPIE_SMP (4), MAGPIE_MEMORY (512M), MAGPIE_GIC (2|3), MAGPIE_EL2 (1), \
                        MAGPIE_CPU (cortex-a72), MAGPIE_TIMEOUT (300 seconds, of a project's suite 1200), MAGPIE_ICOUNT (1), \
                        MAGPIE_INPUT (a file), MAGPIE_APPEND (boot arguments), MAGPIE_NO_INSTALL (1)"
)]
pub struct Options {
    /// The image's ELF
    elf: PathBuf,
    /// key=value words are boot arguments; of the others the first is a test filter
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

/// Runs the verb.
pub fn execute(options: Options) -> Result<u8> {
    boot(&options.elf, None, &options.arguments, USUAL_LIMIT)
}

/// The time limit where the environment names none.
pub const USUAL_LIMIT: Duration = Duration::from_secs(300);

/// Boots an ELF on the machine that the environment asks for, with the arguments that cargo was given. `own_input` is the file
/// for the guest, and `usual_limit` the time limit, where the environment names none.
pub fn boot(
    elf: &Path,
    own_input: Option<PathBuf>,
    arguments: &[String],
    usual_limit: Duration,
) -> Result<u8> {
    let gic = match std::env::var("MAGPIE_GIC") {
        Ok(text) => Some(Gic::from_str(&text, true).map_err(|_| usage("MAGPIE_GIC must be 2 or 3"))?),
        Err(_) => None,
    };
    let memory = variable("MAGPIE_MEMORY", "512M or 2G")?.unwrap_or(Size::from_mebibytes(512));
    let mut machine = Machine::new(variable("MAGPIE_SMP", "4")?.unwrap_or(4), memory, gic)?;
    machine.el2 = switch("MAGPIE_EL2");
    machine.icount = switch("MAGPIE_ICOUNT");
    if let Ok(cpu) = std::env::var("MAGPIE_CPU") {
        machine.cpu = cpu;
    }
    let input: Option<PathBuf> = std::env::var_os("MAGPIE_INPUT").map(Into::into).or(own_input);
    if let Some(input) = &input {
        machine.check_input(input)?;
    }
    let limit = variable("MAGPIE_TIMEOUT", "300")?.map_or(usual_limit, Duration::from_secs);
    let mut words: Vec<String> = std::env::var("MAGPIE_APPEND").into_iter().collect();
    words.extend(boot_arguments(arguments));

    let qemu = Qemu::ready(OLDEST_FOR_VIRT, Install::unless(never_installs()))?;
    let image = write_flat(elf)?;
    super::qemu::show_guest(
        &qemu,
        &Guest { input, arguments: words.join(" "), ..Guest::new(machine, image, limit) },
    )
}

/// Turns the arguments of `cargo test -- ARGS` into boot arguments. libtest's own options mean nothing here.
fn boot_arguments(arguments: &[String]) -> Vec<String> {
    let mut words = Vec::new();
    let mut filtered = false;
    for argument in arguments {
        if argument.starts_with('-') {
            continue;
        }
        if argument.contains('=') {
            words.push(argument.clone());
        } else if !filtered {
            filtered = true;
            words.push(format!("filter={argument}"));
        }
    }
    words
}

fn variable<T: FromStr>(name: &str, example: &str) -> Result<Option<T>> {
    match std::env::var(name) {
        Ok(text) => match text.parse() {
            Ok(value) => Ok(Some(value)),
            Err(_) => Err(usage(format!("{name}={text} cannot be used; write it like {name}={example}"))),
        },
        Err(_) => Ok(None),
    }
}

/// What the environment says of the machine, and the option that says it on a command line.
const ON_A_COMMAND_LINE: [(&str, &str); 8] = [
    ("MAGPIE_SMP", "--smp"),
    ("MAGPIE_MEMORY", "--memory"),
    ("MAGPIE_GIC", "--gic"),
    ("MAGPIE_EL2", "--el2"),
    ("MAGPIE_CPU", "--cpu"),
    ("MAGPIE_ICOUNT", "--icount"),
    ("MAGPIE_INPUT", "--input"),
    ("MAGPIE_APPEND", "--append"),
];

/// Says which of them are there in vain, because a command line was asked.
pub fn say_what_is_ignored() {
    for (variable, option) in ON_A_COMMAND_LINE {
        if std::env::var_os(variable).is_some() {
            eprintln!("xtask: {variable} is for `cargo run` and `cargo test`; here it is {option}");
        }
    }
}

/// Whether the environment forbids to install what is missing.
pub fn never_installs() -> bool {
    switch("MAGPIE_NO_INSTALL")
}

fn switch(name: &str) -> bool {
    std::env::var(name).is_ok_and(|value| !value.is_empty() && value != "0")
}

#[cfg(test)]
mod tests {
    use super::boot_arguments;

    fn words(arguments: &[&str]) -> Vec<String> {
        boot_arguments(&arguments.iter().map(|&argument| argument.to_owned()).collect::<Vec<_>>())
    }

    #[test]
    fn a_test_filter_becomes_a_boot_argument() {
        assert_eq!(words(&["steal"]), ["filter=steal"]);
        assert_eq!(words(&["--nocapture", "steal", "seed=7"]), ["filter=steal", "seed=7"]);
        assert!(words(&["--test-threads", "-q"]).is_empty());
    }
}
