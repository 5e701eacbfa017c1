//! Dumps: asked for while a kernel runs, and of a panic; as a file, and what is shown of it. Where suspended processes are is looked at in tests in
//! the kernel, for no example has some for long.

use super::tmux::{PATIENCE, Tmux};
use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::setup::{Install, OLDEST_FOR_RASPI4B, Qemu};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("dump::of_one_core", |bench| asked(bench, "dump-1", &["--smp", "1"], 1)),
    ("dump::of_five_cores", |bench| asked(bench, "dump-5", &["--smp", "5"], 5)),
    ("dump::of_the_raspberry_pi", raspberry_pi),
    ("dump::of_a_panic", of_a_panic),
    ("dump::suspended_processes_are_found", suspended),
    ("dump::what_is_none_is_refused", refused),
];

fn raspberry_pi(bench: &Bench<'_>) -> Result<Outcome> {
    match Qemu::ready(OLDEST_FOR_RASPI4B, Install::Never) {
        Ok(_) => asked(bench, "dump-pi", &["--board", "rpi4"], 4),
        Err(error) => Ok(Outcome::Skipped(format!("{error:#}"))),
    }
}

/// The command `dump` of an application that crashes and goes on.
fn asked(bench: &Bench<'_>, name: &str, machine: &[&str], cores: usize) -> Result<Outcome> {
    let (script, file) = (bench.folder.join("dump.txt"), bench.folder.join(name));
    fs::write(&script, "wait 0.5\ndump\nexpect end of the dump\nend\n").context("cannot write the script")?;
    let mut command = tool()?;
    command.args(["qemu", "panic", "--no-install", "--append", "seconds=100000"]).args(machine);
    command.arg("--script").arg(&script).arg("--dump").arg(&file);
    let said = Said::of(command)?;
    said.expect_status(0)?.expect_error("xtask: a dump is in ")?;
    let text = fs::read_to_string(&file).context("there is no dump")?;
    ensure!(text.starts_with("Magpie dump 1: panic on "), "it begins as no dump:\n{text}");
    for core in 0..cores {
        ensure!(text.contains(&format!("\ncore {core} ")), "core {core} is not in it:\n{text}");
    }
    // The flight recorder, in an image without traces; a core that is alone steals nothing, and was not idle yet.
    ensure!(cores == 1 || text.contains(" us before: "), "the flight recorder is silent:\n{text}");
    for part in [
        "\ncore 0 looks round in magpie_boot::commands::listen::",
        " magpie_boot::commands::carry_out::",
        // What crashes meanwhile may say so between an echo and its list.
        "\n> stats\n",
        "\ncore   messages ",
        "\n> crashes\n",
        "\n> ps\n",
        "\n> actors\n",
        "\n> tree\n",
        "\n> settings\n",
        "\nsched.slice_us 1000\n",
        "\nend of the dump\n",
    ] {
        ensure!(text.contains(part), "it has no '{part}':\n{text}");
    }
    shows(&file, &text)?;
    Ok(Outcome::Passed)
}

/// What `top` makes of it, in a terminal and in a pipe.
fn shows(file: &Path, text: &str) -> Result<()> {
    let mut command = tool()?;
    command.args(["top", "--dump"]).arg(file);
    ensure!(Said::of(command)?.text() == text, "a pipe gets something else");
    let socket = file.with_extension("tmux");
    let Some(tmux) = Tmux::start(socket, &format!("top --dump '{}'", file.display()))? else { return Ok(()) };
    let cores = tmux.expect(&["Magpie: Cores, ", " panic on "])?;
    tmux.press(&["Down"; 40])?;
    let end = Instant::now() + PATIENCE;
    while tmux.screen()? == cores {
        ensure!(Instant::now() < end, "the arrows do nothing");
        thread::sleep(Duration::from_millis(100));
    }
    tmux.press(&["2"])?;
    tmux.expect(&["Magpie: Processes, ", "listen::listen"])?;
    tmux.press(&["5"])?;
    tmux.expect(&["Magpie: Settings, ", "sched.slice_us 1000"])?;
    Ok(())
}

fn of_a_panic(bench: &Bench<'_>) -> Result<Outcome> {
    let file = bench.folder.join("dump");
    let mut command = tool()?;
    command.args(["qemu", "panic", "--no-install", "--smp", "2", "--dump"]).arg(&file);
    Said::of(command)?.expect_status(1)?.expect_error("xtask: a dump is in ")?;
    let text = fs::read_to_string(&file).context("there is no dump")?;
    for part in [" panic::crashes::", "\n*** kernel panic: "] {
        ensure!(text.contains(part), "it has no '{part}':\n{text}");
    }
    Ok(Outcome::Passed)
}

fn suspended(_: &Bench<'_>) -> Result<Outcome> {
    for cores in ["1", "4"] {
        let mut command = tool()?;
        command.args(["test", "--kernel", "sched", "--no-install", "--verbose", "--smp", cores]);
        command.args(["--filter", "whereabouts::"]);
        let said = Said::of(command)?;
        let text = said.expect_status(0)?.text();
        for part in [
            " is suspended in sched::whereabouts::of_the_suspended::",
            " sched::whereabouts::spins at tests/suites/sched/whereabouts.rs:",
            "\ncore 0 looks round in sched::whereabouts::",
        ] {
            ensure!(text.contains(part), "nothing says '{part}' on {cores} cores:\n{text}");
        }
        // It has interrupts masked for longer than it is waited for.
        ensure!(cores == "1" || text.contains("\ncore 1 does not answer; "), "core 1 answers:\n{text}");
    }
    Ok(Outcome::Passed)
}

fn refused(bench: &Bench<'_>) -> Result<Outcome> {
    let file = bench.folder.join("none");
    fs::write(&file, "hello\n").context("cannot write a file")?;
    let lost = bench.folder.join("nowhere/dump");
    let (file, lost) = (file.to_string_lossy(), lost.to_string_lossy());
    for (words, says) in [
        (&["top", "--dump", &file][..], " is no dump: "),
        (&["top", "--dump", &lost], "cannot read "),
        (&["qemu", "hello", "--no-install", "--dump", &lost], "cannot write "),
    ] {
        let mut command = tool()?;
        command.args(words);
        let said = Said::of(command)?;
        said.expect_status(2)?;
        ensure!(said.err.contains(says) && said.err.lines().count() == 1, "{words:?} says {}", said.err);
    }
    // Nobody asked, and nothing failed: there is no file.
    let mut command = tool()?;
    let unasked = bench.folder.join("unasked");
    command.args(["qemu", "hello", "--no-install", "--dump"]).arg(&unasked);
    Said::of(command)?.expect_status(0)?.expect_error("xtask: there was no dump")?;
    ensure!(!unasked.exists(), "a file was left");
    Ok(Outcome::Passed)
}
