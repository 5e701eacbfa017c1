//! A panic of the real kernel ends the whole command with failure and its message, which says what ended and, where that
//! is the cause, how large its stack is. It needs an example named `panic`.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Result, ensure};

/// The example that panics on purpose.
const EXAMPLE: &str = "panic";

pub const CASES: &[Case] = &[
    ("kernel_panic::ends_with_failure_and_its_message", panics),
    ("kernel_panic::who_ends_for_want_of_memory_is_counted", counted),
    ("kernel_panic::larger_stacks", larger_stacks),
    ("kernel_panic::larger_stacks_overflow_alike", larger_stacks_overflow),
];

fn panics(bench: &Bench<'_>) -> Result<Outcome> {
    if !bench.workspace.examples().contains(&EXAMPLE) {
        return Ok(Outcome::Skipped(format!("there is no example '{EXAMPLE}'")));
    }
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--timeout", &bench.limit.as_secs().to_string()]);
    let said = Said::of(command)?;
    said.expect_status(1)?.expect_error("the kernel panicked: ")?;
    for part in
        ["panic::crashes::", "its stack has 51 KiB, of 64; the boot argument stack_kib=N makes it larger"]
    {
        ensure!(said.text().contains(part), "nothing says '{part}':\n{}", said.text());
    }
    Ok(Outcome::Passed)
}

/// A test in the kernel lets three actors use memory up, one after the other.
fn counted(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["test", "--kernel", "containment", "--smp", "2", "--no-install", "--verbose"]);
    command.args(["--memory", "64M", "--filter", "the_last_memory_comes_back"]);
    let said = Said::of(command)?;
    said.expect_status(0)?.expect_line("in all 3 ended for want of memory")?;
    let times = said.text().matches("memory allocation of ").count();
    ensure!(times == 2, "said {times} times, not twice:\n{}", said.text());
    ensure!(said.text().contains("2 ended for want of memory; the heap has "), "{}", said.text());
    Ok(Outcome::Passed)
}

/// With larger stacks what had no room has it.
fn larger_stacks(bench: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--append", "stack_kib=256"]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    Said::of(command)?.expect_status(1)?.expect_line("102400 bytes have room")?;
    Ok(Outcome::Passed)
}

/// Guards and reserves lie where the size puts them; an odd multiple of the usual one.
fn larger_stacks_overflow(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["test", "--kernel", "containment", "--filter", "stacks::", "--smp", "2", "--no-install"]);
    command.args(["--append", "stack_kib=192"]);
    Said::of(command)?.expect_status(0)?;
    Ok(Outcome::Passed)
}
