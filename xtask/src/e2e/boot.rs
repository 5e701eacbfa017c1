//! The kernel comes up on every shape of the machine: entered at EL1 and at EL2, with either interrupt
//! controller, with one core and with more than the first controller can have, with little memory.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::Result;

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
