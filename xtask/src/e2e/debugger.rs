//! gdb with the commands that know the kernel: what it shows of a guest that was stopped in the middle, and that the guest goes on.

use super::tool::{Said, tool_as_it_is};
use super::{Bench, Case, Outcome};
use crate::build::{Features, TESTS_PACKAGE, build_application, build_suites, write_flat};
use crate::machine::{Debugger, Guest, Machine, Size, guest_command, write_script};
use crate::setup::{Install, Qemu, ready_gdb};
use anyhow::{Context, Result, ensure};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

pub const CASES: &[Case] = &[
    ("debugger::shows_what_is_suspended", shows_what_is_suspended),
    ("debugger::is_waited_for", is_waited_for),
];

/// One that nobody listens at just now.
fn free_port() -> Result<u16> {
    Ok(TcpListener::bind("127.0.0.1:0")
        .and_then(|listener| listener.local_addr())
        .context("no port is free")?
        .port())
}

/// gdb, which carries out these commands one after another once the guest is there.
fn gdb(program: &str, script: &Path, elf: &Path, port: u16, commands: &[&str]) -> Command {
    let mut command = Command::new("timeout");
    command.args(["300", program, "-nx", "-batch"]).arg("-x").arg(script).stdin(Stdio::null());
    // The guest may take a while to listen.
    for first in [
        "set pagination off",
        "set width 0",
        "set tcp connect-timeout 100",
        &format!("target remote :{port}"),
    ] {
        command.args(["-ex", first]);
    }
    for next in commands {
        command.args(["-ex", next]);
    }
    command.arg(elf);
    command
}

/// The suite `debugger`: two processes are suspended on core 0, where a third runs, and five messages wait.
fn shows_what_is_suspended(bench: &Bench<'_>) -> Result<Outcome> {
    let program = match ready_gdb(Install::Allowed) {
        Ok(program) => program,
        Err(reason) => return Ok(Outcome::Skipped(reason)),
    };
    let built = build_suites(TESTS_PACKAGE, &["debugger"], Features::default())?;
    let image = write_flat(&built.first().context("the suite debugger was not built")?.path)?;
    let port = free_port()?;
    let debugger = Some(Debugger { port, waits: true });
    let machine = Machine { debugger, ..Machine::new(2, Size::from_mebibytes(512), None)? };
    let elf = image.elf.clone();
    let guest = Guest::new(machine, image, bench.limit);
    let qemu = Qemu::find().context("QEMU is missing")?;
    let mut command = Command::new("timeout");
    command.arg("300").arg(&qemu.path).args(guest_command(&qemu.path, &guest).get_args());
    let running = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let running = running.context("QEMU cannot be started")?;
    let script = write_script(&bench.folder)?;
    let stops = ["break the_debugger_stops_here", "continue"];
    let looks =
        ["magpie cores", "magpie processes", "magpie mailboxes", "magpie backtrace", "info registers pc"];
    let goes_on = ["delete", "continue"];
    let shown = Said::of(gdb(program, &script, &elf, port, &[&stops[..], &looks, &goes_on].concat()))?;
    let ended = Said::from(running.wait_with_output().context("QEMU is lost")?);
    let text = shown.text();
    ensure!(
        ended.status == Some(0),
        "the guest ended with {:?} after this:\n{text}\n{}",
        ended.status,
        shown.err
    );
    ensure!(ended.text().contains("@test done 1 0 0"), "the guest's test has not passed:\n{}", ended.text());
    ensure_shown(&text, &shown.err)?;
    Ok(Outcome::Passed)
}

fn ensure_shown(text: &str, errors: &str) -> Result<()> {
    let hog = "debugger::three_hogs_share_a_core::";
    ensure!(
        text.lines().any(|line| line.starts_with("core 0 is in a turn of ")),
        "core 0 is not shown:\n{text}\n{errors}"
    );
    ensure!(text.lines().any(|line| line.starts_with("core 1 is ")), "core 1 is not shown:\n{text}");
    let suspended = |line: &&str| line.contains(" core 0 Normal suspended ") && line.contains(hog);
    ensure!(text.lines().filter(suspended).count() == 2, "not two hogs are suspended:\n{text}");
    ensure!(
        text.lines().any(|line| line.contains(" waiting ") && line.ends_with("magpie::time::sleep::Sleep")),
        "the process that sleeps is not shown:\n{text}"
    );
    ensure!(
        text.contains(" core 0: 5 waiting, 0 taken before pinned\n1 of "),
        "the mailbox with five messages is not shown:\n{text}"
    );
    // From where it was interrupted, which may be in what it calls and the compiler has put there, to the core's loop.
    let stopped = |line: &&str| {
        line.starts_with('#')
            && line[1..].starts_with(['0', '1', '2', '3'])
            && line.contains("debugger::spins_until_all_is_over ()")
    };
    ensure!(text.lines().filter(stopped).count() == 2, "two backtraces do not begin in the hogs:\n{text}");
    for part in [hog, "magpie::sched::run::core_loop::run "] {
        ensure!(text.matches(part).count() >= 2, "two backtraces do not have {part}:\n{text}");
    }
    // The core has its own registers again.
    ensure!(
        text.lines().any(|line| line.starts_with("pc ") && line.contains("the_debugger_stops_here")),
        "the registers were not put back:\n{text}"
    );
    Ok(())
}

/// `qemu --gdb --wait` begins when somebody has come and says so, and says how to come.
fn is_waited_for(bench: &Bench<'_>) -> Result<Outcome> {
    let program = match ready_gdb(Install::Allowed) {
        Ok(program) => program,
        Err(reason) => return Ok(Outcome::Skipped(reason)),
    };
    // gdb reads it before the tool has built it.
    let elf = build_application("hello", Features::default())?;
    let port = free_port()?;
    let mut command = tool_as_it_is()?;
    command.args(["qemu", "hello", "--no-install", "--smp", "2", "--wait", &format!("--gdb={port}")]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    let running = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("the tool cannot be started")?;
    let script = write_script(&bench.folder)?;
    // It stands before the first instruction.
    let shown = Said::of(gdb(
        program,
        &script,
        &elf,
        port,
        &["info registers pc", "break magpie_main", "continue", "magpie cores", "delete", "continue"],
    ))?;
    let said = Said::from(running.wait_with_output().context("the tool is lost")?);
    let text = shown.text();
    said.expect_status(0)?.expect_line("hello from core 1")?;
    ensure!(
        said.err.contains(&format!("target remote :{port}")),
        "it is not said how to come:\n{}",
        said.err
    );
    ensure!(
        text.contains("pc             0x40000000"),
        "the guest has begun already:\n{text}\n{}",
        shown.err
    );
    ensure!(text.contains("\ncore 1 "), "the cores are not shown:\n{text}\n{}", shown.err);
    Ok(Outcome::Passed)
}
