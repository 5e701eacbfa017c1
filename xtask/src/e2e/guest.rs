//! A run's ending: the guest's status is handed on, a guest that hangs is ended, a QEMU that dies is
//! reported, Ctrl-C leaves nothing behind. On the fixture guest, so that they hold without a kernel.

use super::fixture::fixture;
use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::setup::Qemu;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("guest::success_is_status_0", success),
    ("guest::failure_is_handed_on", failure),
    ("guest::panic_is_status_1_with_its_message", panic),
    ("guest::hanging_guest_is_ended_at_the_time_limit", hang),
    ("guest::dying_qemu_is_reported", dying_qemu),
    ("guest::qemu_that_refuses_is_reported", refusing_qemu),
    ("guest::ctrl_c_ends_the_guest", ctrl_c),
    ("guest::qemu_that_is_asked_to_end_is_a_failure", asked_to_end),
    ("guest::a_killed_tool_leaves_nothing_behind", killed_tool),
    ("guest::output_that_nobody_reads_ends_the_guest", unheard),
    ("guest::a_closed_pipe_is_no_panic", closed_pipe),
    ("guest::a_reader_that_does_not_read_moves_no_limit", |bench| stuck(bench, Stuck::Limit)),
    ("guest::a_reader_that_does_not_read_stops_no_ctrl_c", |bench| stuck(bench, Stuck::CtrlC)),
    ("guest::messages_that_nobody_reads_move_no_limit", |bench| stuck(bench, Stuck::LimitUnsaid)),
];

/// Far longer than it takes on a host that has much else to do.
const HANGS_AFTER: Duration = Duration::from_secs(240);

fn run(bench: &Bench<'_>, ending: &str, settings: &[(&str, &str)]) -> Result<Said> {
    let mut command = tool()?;
    command.arg("runner").arg(fixture(bench, ending)?).env("MAGPIE_TIMEOUT", "300").env("MAGPIE_SMP", "1");
    command.envs(settings.iter().copied());
    Said::of(command)
}

fn success(bench: &Bench<'_>) -> Result<Outcome> {
    let said = run(bench, "success", &[])?;
    said.expect_status(0)?.expect_error("Ctrl-C ends it")?;
    said.expect_line("hello from the fixture")?.expect_line("partial line")?;
    said.expect_line("@panic is only a word")?;
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
    if began.elapsed() > HANGS_AFTER {
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

/// The tool beside a QEMU that goes on until it is ended.
struct Waiting {
    tool: Child,
    out: BufReader<ChildStdout>,
    qemu: String,
}

impl Waiting {
    fn start(bench: &Bench<'_>, name: &str, body: &str) -> Result<Self> {
        let pid_file = bench.folder.join(format!("{name}.pid"));
        let qemu = impostor(bench, name, &format!("echo $$ > '{}'\n{body}", pid_file.display()))?;
        let mut command = tool()?;
        command.arg("runner").arg(fixture(bench, "hang")?).env("MAGPIE_QEMU", qemu);
        let mut tool =
            command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().context("cannot start")?;
        let mut out = BufReader::new(tool.stdout.take().context("no output")?);
        out.read_line(&mut String::new()).context("no first line")?;
        let qemu = fs::read_to_string(&pid_file).context("the script noted no number")?.trim().to_owned();
        let waiting = Self { tool, out, qemu };
        ensure!(waiting.qemu_runs()?, "the script does not run");
        Ok(waiting)
    }

    fn qemu_runs(&self) -> Result<bool> {
        signal("-0", &self.qemu)
    }

    /// Waits until QEMU has ended, a while at most.
    fn expect_no_qemu(&self) -> Result<()> {
        let began = Instant::now();
        while self.qemu_runs()? {
            ensure!(began.elapsed() < HANGS_AFTER, "QEMU still runs");
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }
}

/// Longer than anything here waits.
const SLEEP: &str = "echo started\nexec sleep 600";

fn ctrl_c(bench: &Bench<'_>) -> Result<Outcome> {
    let mut waiting = Waiting::start(bench, "qemu-that-waits", SLEEP)?;
    // The signal goes to the tool alone, so it is the tool that has to end QEMU.
    ensure!(signal("-INT", &waiting.tool.id().to_string())?, "the signal was not sent");
    let mut err = String::new();
    waiting.tool.stderr.take().context("no errors")?.read_to_string(&mut err).context("cannot read")?;
    let status = waiting.tool.wait().context("cannot wait")?.code();
    Said { status, out: Vec::new(), err }.expect_status(130)?.expect_error("interrupted; QEMU was ended")?;
    ensure!(!waiting.qemu_runs()?, "QEMU still runs");
    Ok(Outcome::Passed)
}

/// QEMU catches a request to end, says so, and ends with success; here the real one.
fn asked_to_end(bench: &Bench<'_>) -> Result<Outcome> {
    let qemu = Qemu::find().context("QEMU is missing")?;
    let body = format!("echo started\nexec '{}' \"$@\"", qemu.path.display());
    let waiting = Waiting::start(bench, "qemu-that-is-asked", &body)?;
    // Until it is QEMU, and catches signals.
    let mut out = waiting.out;
    out.read_line(&mut String::new()).context("the guest says nothing")?;
    ensure!(signal("-TERM", &waiting.qemu)?, "the signal was not sent");
    let said = Said::from(waiting.tool.wait_with_output().context("cannot wait")?);
    said.expect_status(1)?.expect_error("QEMU died of signal 15")?;
    Ok(Outcome::Passed)
}

fn killed_tool(bench: &Bench<'_>) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("only Linux ends a child with its parent".into()));
    }
    let mut waiting = Waiting::start(bench, "qemu-that-is-left", SLEEP)?;
    waiting.tool.kill().context("cannot kill")?;
    waiting.tool.wait().context("cannot wait")?;
    waiting.expect_no_qemu()?;
    Ok(Outcome::Passed)
}

fn unheard(bench: &Bench<'_>) -> Result<Outcome> {
    let body = "echo started\nwhile sleep 0.05; do echo more || exit 1; done";
    let Waiting { tool, out, qemu } = Waiting::start(bench, "qemu-that-talks", body)?;
    drop(out);
    let said = Said::from(tool.wait_with_output().context("cannot wait")?);
    said.expect_status(141)?;
    ensure!(said.err.lines().count() <= 1, "it is not quiet:\n{}", said.err);
    ensure!(!signal("-0", &qemu)?, "QEMU still runs");
    Ok(Outcome::Passed)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stuck {
    Limit,
    CtrlC,
    /// Messages go where nobody reads, too.
    LimitUnsaid,
}

/// A guest that talks without end to a reader that never reads.
fn stuck(bench: &Bench<'_>, how: Stuck) -> Result<Outcome> {
    let qemu = impostor(bench, "qemu-that-never-stops", "exec yes 'a line of output'")?;
    let limit = if how == Stuck::CtrlC { "300" } else { "3" };
    // Nothing is ever read from it.
    let (_reader, writer) = io::pipe().context("cannot make a pipe")?;
    let mut command = tool()?;
    command.arg("runner").arg(fixture(bench, "hang")?).env("MAGPIE_QEMU", qemu).env("MAGPIE_TIMEOUT", limit);
    command.stderr(match how {
        Stuck::LimitUnsaid => Stdio::from(writer.try_clone().context("cannot share the pipe")?),
        Stuck::Limit | Stuck::CtrlC => Stdio::piped(),
    });
    let mut child = command.stdout(writer).spawn().context("cannot start")?;
    drop(command);
    if how == Stuck::CtrlC {
        // Until the pipe and all else is full.
        thread::sleep(Duration::from_secs(3));
        ensure!(signal("-INT", &child.id().to_string())?, "the signal was not sent");
    }
    let began = Instant::now();
    while child.try_wait().context("cannot wait")?.is_none() {
        if began.elapsed() > Duration::from_secs(60) {
            child.kill().context("cannot kill")?;
            bail!("the tool does not end");
        }
        thread::sleep(Duration::from_millis(20));
    }
    let said = Said::from(child.wait_with_output().context("cannot wait")?);
    match how {
        Stuck::Limit => {
            said.expect_status(1)?.expect_error("time limit of 3 s")?.expect_error("nobody reads")?
        }
        Stuck::CtrlC => said.expect_status(130)?.expect_error("interrupted")?,
        Stuck::LimitUnsaid => said.expect_status(1)?,
    };
    Ok(Outcome::Passed)
}

fn closed_pipe(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    let mut child = command
        .arg("doctor")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("cannot start")?;
    drop(child.stdout.take());
    let said = Said::from(child.wait_with_output().context("cannot wait")?);
    said.expect_status(141)?;
    ensure!(said.err.is_empty(), "it is not quiet:\n{}", said.err);
    Ok(Outcome::Passed)
}

/// Sends a signal; whether the process was there to receive it.
fn signal(signal: &str, pid: &str) -> Result<bool> {
    let status = Command::new("kill").args([signal, pid]).stderr(Stdio::null()).status();
    Ok(status.context("kill cannot be started")?.success())
}
