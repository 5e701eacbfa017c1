//! A run's ending: the guest's status is handed on, a guest that hangs is ended, a QEMU that dies is
//! reported, Ctrl-C leaves nothing behind. On the fixture guest, so that they hold without a kernel.

use super::fixture::fixture;
use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("guest::success_is_status_0", success),
    ("guest::failure_is_handed_on", failure),
    ("guest::panic_is_status_1_with_its_message", panic),
    ("guest::hanging_guest_is_ended_at_the_time_limit", hang),
    ("guest::dying_qemu_is_reported", dying_qemu),
    ("guest::qemu_that_refuses_is_reported", refusing_qemu),
    ("guest::ctrl_c_ends_the_guest", ctrl_c),
];

fn run(bench: &Bench<'_>, ending: &str, settings: &[(&str, &str)]) -> Result<Said> {
    let mut command = tool()?;
    command.arg("runner").arg(fixture(bench, ending)?).env("MAGPIE_TIMEOUT", "60").env("MAGPIE_SMP", "1");
    command.envs(settings.iter().copied());
    Said::of(command)
}

fn success(bench: &Bench<'_>) -> Result<Outcome> {
    let said = run(bench, "success", &[])?;
    said.expect_status(0)?.expect_error("Ctrl-C ends it")?;
    said.expect_line("hello from the fixture")?.expect_line("partial line")?;
    Ok(Outcome::Passed)
}

fn failure(bench: &Bench<'_>) -> Result<Outcome> {
    run(bench, "failure", &[])?.expect_status(3)?.expect_error("ended with failure, status 3")?;
    Ok(Outcome::Passed)
}

fn panic(bench: &Bench<'_>) -> Result<Outcome> {
    run(bench, "panic", &[])?.expect_status(1)?.expect_error("panicked: the fixture was asked to")?;
    Ok(Outcome::Passed)
}

fn hang(bench: &Bench<'_>) -> Result<Outcome> {
    let began = Instant::now();
    let said = run(bench, "hang", &[("MAGPIE_TIMEOUT", "2")])?;
    said.expect_status(1)?.expect_error("time limit of 2 s")?.expect_line("partial line")?;
    if began.elapsed() > Duration::from_secs(30) {
        bail!("it took {:?}", began.elapsed());
    }
    Ok(Outcome::Passed)
}

/// A program that says it is QEMU and then does as `body` says.
fn impostor(bench: &Bench<'_>, name: &str, body: &str) -> Result<String> {
    let path = bench.folder.join(name);
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'QEMU emulator version 10.0.0' && exit 0\n{body}\n"
    );
    fs::write(&path, script).context("cannot write the script")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .context("cannot make the script executable")?;
    Ok(path.to_string_lossy().into_owned())
}

fn dying_qemu(bench: &Bench<'_>) -> Result<Outcome> {
    let qemu = impostor(bench, "qemu-that-dies", "echo 'some output'\nkill -9 $$")?;
    let said = run(bench, "success", &[("MAGPIE_QEMU", &qemu)])?;
    said.expect_status(1)?.expect_error("QEMU died of signal 9")?.expect_line("some output")?;
    Ok(Outcome::Passed)
}

fn refusing_qemu(bench: &Bench<'_>) -> Result<Outcome> {
    let said = run(bench, "success", &[("MAGPIE_CPU", "no-such-cpu")])?;
    said.expect_status(1)?.expect_error("QEMU did not start the kernel")?.expect_error("no-such-cpu")?;
    Ok(Outcome::Passed)
}

fn ctrl_c(bench: &Bench<'_>) -> Result<Outcome> {
    let pid_file = bench.folder.join("qemu.pid");
    let body = format!("echo $$ > '{}'\necho started\nexec sleep 60", pid_file.display());
    let qemu = impostor(bench, "qemu-that-waits", &body)?;
    let mut command = tool()?;
    command.arg("runner").arg(fixture(bench, "hang")?).env("MAGPIE_QEMU", qemu);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("cannot start")?;
    let mut out = BufReader::new(child.stdout.take().context("no output")?);
    out.read_line(&mut String::new()).context("no first line")?;
    let pid = fs::read_to_string(&pid_file).context("the script noted no number")?;
    let runs = || signal("-0", pid.trim());
    ensure!(runs()?, "the script does not run");
    // The signal goes to the tool alone, so it is the tool that has to end QEMU.
    ensure!(signal("-INT", &child.id().to_string())?, "the signal was not sent");
    let said = Said::from(child.wait_with_output().context("cannot wait")?);
    said.expect_status(130)?.expect_error("interrupted; QEMU was ended")?;
    ensure!(!runs()?, "QEMU still runs");
    Ok(Outcome::Passed)
}

/// Sends a signal; whether the process was there to receive it.
fn signal(signal: &str, pid: &str) -> Result<bool> {
    let status = Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status();
    Ok(status.context("kill cannot be started")?.success())
}
