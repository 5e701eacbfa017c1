//! A panic of the real kernel ends the whole command with failure and its message, which says what ended and, where that
//! is the cause, how large its stack is, and every core stops and says where it is. It needs an example named `panic`.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::setup::{Install, OLDEST_FOR_RASPI4B, Qemu};
use anyhow::{Result, ensure};

/// The example that panics on purpose.
const EXAMPLE: &str = "panic";

pub const CASES: &[Case] = &[
    ("kernel_panic::ends_with_failure_and_its_message", panics),
    ("kernel_panic::who_ends_for_want_of_memory_is_counted", counted),
    ("kernel_panic::every_core_says_where_it_is", |bench| every_core(bench, &["--smp", "4"], 4)),
    ("kernel_panic::sixteen_cores_say_where_they_are", |bench| every_core(bench, &["--smp", "16"], 16)),
    ("kernel_panic::every_core_of_the_raspberry_pi_says_where_it_is", raspberry_pi),
    ("kernel_panic::a_core_that_does_not_answer_is_named", no_answer),
    ("kernel_panic::there_is_one_dump", one_dump),
    ("kernel_panic::larger_stacks", larger_stacks),
    ("kernel_panic::larger_stacks_overflow_alike", larger_stacks_overflow),
];

fn panics(bench: &Bench<'_>) -> Result<Outcome> {
    if !bench.workspace.applications().contains(&EXAMPLE) {
        return Ok(Outcome::Skipped(format!("there is no application '{EXAMPLE}'")));
    }
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--timeout", &bench.limit.as_secs().to_string()]);
    let said = Said::of(command)?;
    said.expect_status(1)?.expect_error("the kernel panicked: ")?;
    for part in [
        "panic::crashes::",
        "its stack has 51 KiB, of 64; the boot argument stack_kib=N makes it larger",
        // Where one has panicked, and another has read what is not there, with what these were inlined into.
        " panic::crashes::{{closure}}::{{closure}} at examples/panic/src/main.rs:",
        " inlined into panic::crashes::{{closure}}::{{closure}} at examples/panic/src/main.rs:",
    ] {
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

/// Runs a test in the kernel that ends in a panic.
fn stopping(test: &str, options: &[&str]) -> Result<Said> {
    let mut command = tool()?;
    command.args(["test", "--kernel", "sched", "--no-install", "--verbose", "--filter", test]).args(options);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    Ok(said)
}

/// One panics with a lock held, another waits for that, a third sleeps, the rest are busy.
fn every_core(_: &Bench<'_>, options: &[&str], cores: usize) -> Result<Outcome> {
    let said = stopping("stopping::with_locks_held", options)?.text();
    for part in [
        "panic on core 0 at tests/suites/sched/stopping.rs:",
        "\ncore 0 panicked in sched::stopping::",
        "; 0 max, 0 high, 2 normal, 1 low wait\n",
        " sched::stopping::panics_with_all_held at tests/suites/sched/stopping.rs:",
        "\ncore 1 was stopped in sched::stopping::put<sched::stopping::waits_for_a_lock>::",
        " sched::stopping::waits_for_a_lock at tests/suites/sched/stopping.rs:",
        "\ncore 2 was stopped between two turns; ",
        "\ncore 3 was stopped in sched::stopping::put<",
        " sched::stopping::spins at tests/suites/sched/stopping.rs:",
    ] {
        ensure!(said.contains(part), "nothing says '{part}':\n{said}");
    }
    let stopped =
        said.lines().filter(|line| line.starts_with("core ") && line.contains(" was stopped ")).count();
    ensure!(stopped == cores - 1, "{stopped} cores were stopped:\n{said}");
    let registers = said.lines().filter(|line| line.starts_with("  x28 ")).count();
    ensure!(registers == cores - 1, "the registers of {registers} cores are shown:\n{said}");
    Ok(Outcome::Passed)
}

fn raspberry_pi(bench: &Bench<'_>) -> Result<Outcome> {
    match Qemu::ready(OLDEST_FOR_RASPI4B, Install::Never) {
        Err(error) => Ok(Outcome::Skipped(format!("{error:#}"))),
        Ok(_) => every_core(bench, &["--board", "rpi4"], 4),
    }
}

fn no_answer(_: &Bench<'_>) -> Result<Outcome> {
    let said = stopping("stopping::with_a_core_that_does_not_answer", &["--smp", "4"])?.text();
    for part in ["\ncore 1 does not answer; ", "\ncore 2 was stopped in ", "\ncore 3 was stopped in "] {
        ensure!(said.contains(part), "nothing says '{part}':\n{said}");
    }
    Ok(Outcome::Passed)
}

/// However many panic at once.
fn one_dump(_: &Bench<'_>) -> Result<Outcome> {
    let said = stopping("stopping::on_all_cores_at_once", &["--smp", "4"])?.text();
    let count = |what: &str| said.matches(what).count();
    let counted = (count("panic on core "), count("\n*** kernel panic: "), count(" low wait\n"));
    ensure!(counted == (1, 1, 4), "messages, ends and cores: {counted:?}\n{said}");
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
