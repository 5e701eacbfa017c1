//! The kernel comes up on every shape of the machine: entered at EL1 and at EL2, with either interrupt
//! controller, with one core and with more than the first controller can have, with little memory.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::build::{Features, build_example, write_flat};
use crate::machine::{Guest, Machine, Size, guest_command};
use crate::setup::Qemu;
use anyhow::{Context, Result, ensure};
use std::process::Command;
use std::time::Duration;

/// It says `hello from core N` on each core.
const EXAMPLE: &str = "hello";

pub const CASES: &[Case] = &[
    ("boot::one_core", |bench| boot(bench, 1, &[])),
    ("boot::entered_at_el2", |bench| boot(bench, 4, &["--el2"])),
    ("boot::gicv3", |bench| boot(bench, 4, &["--gic", "3"])),
    ("boot::gicv3_entered_at_el2", |bench| boot(bench, 2, &["--gic", "3", "--el2"])),
    ("boot::little_memory", |bench| boot(bench, 4, &["--memory", "64M"])),
    ("boot::another_processor", |bench| boot(bench, 2, &["--cpu", "max"])),
    ("boot::odd_arguments", odd_arguments),
    ("boot::sixty_four_cores", |bench| boot(bench, 64, &[])),
    ("boot::a_host_that_takes_no_status", without_semihosting),
];

fn boot(bench: &Bench<'_>, cores: u32, options: &[&str]) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--smp", &cores.to_string()]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]).args(options);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    for core in 0..cores {
        said.expect_line(&format!("hello from core {core}"))?;
    }
    Ok(Outcome::Passed)
}

/// The machine is switched off all the same, and nothing is said to have failed.
fn without_semihosting(_: &Bench<'_>) -> Result<Outcome> {
    let qemu = Qemu::find().context("QEMU is missing")?;
    let image = write_flat(&build_example(EXAMPLE, Features::default())?)?;
    let limit = Duration::from_secs(60);
    let machine = Machine::new(2, Size::from_mebibytes(512), None)?;
    let (arguments, commands) = (String::new(), false);
    let guest = Guest { machine, image, input: None, tree: None, commands, arguments, limit };
    let command = guest_command(&qemu.path, &guest);
    let mut unheard = Command::new("timeout");
    unheard.arg(limit.as_secs().to_string()).arg(&qemu.path);
    unheard.args(command.get_args().filter(|argument| *argument != "-semihosting"));
    let said = Said::of(unheard)?;
    said.expect_status(0)?.expect_line("hello from core 1")?;
    said.expect_line("nobody takes the exit status: the machine is switched off")?;
    ensure!(!said.text().contains("panic"), "it panics:\n{}", said.text());
    Ok(Outcome::Passed)
}

fn odd_arguments(bench: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args([
        "qemu",
        EXAMPLE,
        "--no-install",
        "--append",
        "sched.slice_us=1 sched.nonsense=5 sched.thieves=x =",
    ]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    for line in [
        "boot argument sched.slice_us=1 ignored: it goes from 50 to 1000000",
        "boot argument sched.nonsense=5 ignored: no setting has this name",
        "boot argument sched.thieves=x ignored: its value is a whole number",
        "hello from core 3",
    ] {
        said.expect_line(line)?;
    }
    Ok(Outcome::Passed)
}
