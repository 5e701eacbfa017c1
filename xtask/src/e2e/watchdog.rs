//! The kernel's watchdog: what it says about a core that makes no progress, how the system ends for it, and that it starts again. On
//! tests in the kernel, because no application can keep a core from scheduling.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::setup::{Install, OLDEST_FOR_RASPI4B, Qemu};
use anyhow::{Result, ensure};

pub const CASES: &[Case] = &[
    ("watchdog::a_core_that_answers_says_where_it_is", answers),
    ("watchdog::a_core_that_does_not_answer_is_named", no_answer),
    ("watchdog::the_system_stops", stops),
    ("watchdog::the_system_stops_on_one_core", stops_alone),
    ("watchdog::the_machine_starts_again", |_| starts_again(&["--smp", "2"])),
    ("watchdog::the_raspberry_pi_starts_again", raspberry_pi),
    ("watchdog::arguments_out_of_range_are_reported", arguments),
];

/// Runs tests of the suite.
fn test(name: &str, options: &[&str]) -> Result<String> {
    let mut command = tool()?;
    command.args(["test", "--kernel", "sched", "--no-install", "--verbose"]).args(options);
    command.args(["--filter", &format!("watchdog::{name}")]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    Ok(said.text())
}

fn ensure_parts(said: &str, parts: &[&str]) -> Result<Outcome> {
    for part in parts {
        ensure!(said.contains(part), "nothing says '{part}':\n{said}");
    }
    Ok(Outcome::Passed)
}

const STUCK_IN_A_SECTION: &str = " sched::watchdog::stuck_in_a_section at tests/suites/sched/watchdog.rs:";

/// It notices itself, and the others are asked.
fn answers(_: &Bench<'_>) -> Result<Outcome> {
    let said = test("a_section_that_does_not_end_is_noticed", &["--smp", "2"])?;
    ensure_parts(
        &said,
        &[
            "\nwatchdog: core 1 has made no progress for 400 ms\n",
            "\ncore 0 was met between two turns; 0 max, 0 high, 0 normal, 0 low wait\n",
            "\ncore 1 looks round in sched::watchdog::on<",
            STUCK_IN_A_SECTION,
        ],
    )
}

/// Another notices it.
fn no_answer(_: &Bench<'_>) -> Result<Outcome> {
    let said = test("masked_interrupts_are_noticed", &["--smp", "4"])?;
    for core in [0, 1, 3] {
        let line = format!("\nwatchdog: core {core} has made no progress for 400 ms\n");
        let (_, dump) = said.split_once(&line).unwrap_or_default();
        let dump: Vec<_> = dump.lines().filter(|line| line.starts_with("core ")).take(4).collect();
        ensure!(dump.len() == 4, "of core {core} there is no dump:\n{said}");
        let silent = dump.iter().position(|line| line.contains(" does not answer; "));
        ensure!(silent == Some(core), "core {core} is not the one that does not answer:\n{said}");
    }
    Ok(Outcome::Passed)
}

fn stops(_: &Bench<'_>) -> Result<Outcome> {
    let said = test("stops_for_masked_interrupts", &["--smp", "2"])?;
    ensure_parts(
        &said,
        &[
            "watchdog: core 1 has made no progress for 400 ms\n",
            "\ncore 0 panicked between two turns; ",
            "\ncore 1 does not answer; ",
            "\n*** kernel panic: watchdog: core 1 has made no progress for 400 ms",
        ],
    )
}

/// The core's own timer finds it.
fn stops_alone(_: &Bench<'_>) -> Result<Outcome> {
    let said = test("stops_for_a_section_that_does_not_end", &["--smp", "1"])?;
    ensure_parts(
        &said,
        &[
            "\ncore 0 panicked in core::pin::Pin<",
            "  in the handler of an interrupt, which met\n  x0  ",
            STUCK_IN_A_SECTION,
        ],
    )
}

/// The emulator ends where the machine would start again; else what follows would be said.
fn starts_again(options: &[&str]) -> Result<Outcome> {
    let said = test("starts_again", options)?;
    ensure!(!said.contains("\nit does not\n"), "it does not start again:\n{said}");
    ensure_parts(&said, &["\nthe machine starts again\n"])
}

fn raspberry_pi(_: &Bench<'_>) -> Result<Outcome> {
    match Qemu::ready(OLDEST_FOR_RASPI4B, Install::Never) {
        Err(error) => Ok(Outcome::Skipped(format!("{error:#}"))),
        Ok(_) => starts_again(&["--board", "rpi4"]),
    }
}

/// And those within are taken, without a false alarm.
fn arguments(bench: &Bench<'_>) -> Result<Outcome> {
    let run = |arguments: &str| {
        let mut command = tool()?;
        command.args(["qemu", "hello", "--no-install", "--smp", "2", "--append", arguments]);
        command.args(["--timeout", &bench.limit.as_secs().to_string()]);
        Said::of(command)
    };
    let said = run("watchdog.limit_us=30000001 watchdog.action=restart")?;
    said.expect_status(0)?;
    said.expect_line("boot argument watchdog.limit_us=30000001 ignored: it goes from 0 to 30000000")?;
    said.expect_line("boot argument watchdog.action=restart ignored: its value is a whole number")?;
    let said = run("watchdog.limit_us=5000000 watchdog.action=1")?;
    said.expect_status(0)?.expect_line("hello from core 1")?;
    ensure!(!said.text().contains("ignored"), "{}", said.text());
    Ok(Outcome::Passed)
}
