//! What waiting costs the host: a guest whose four cores have nothing to do must leave the host alone.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
#[cfg(target_os = "linux")]
use std::fs;
use std::process::{Child, Stdio};

/// It sleeps for as long as the boot argument `seconds` says.
const EXAMPLE: &str = "idle";
const SECONDS: u64 = 10;
/// Hundredths of one host core, at most. About one was measured.
const MOST_PERCENT: f64 = 5.0;
/// Linux counts processor time for `/proc` in hundredths of a second.
#[cfg(target_os = "linux")]
const TICKS_PER_SECOND: f64 = 100.0;

pub const CASES: &[Case] = &[("idle::waiting_cores_leave_the_host_alone", waiting)];

fn waiting(bench: &Bench<'_>) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("the processor time of children is read from Linux's /proc".into()));
    }
    // Processor time, not wall-clock time: a busy host does not change it much. The first run builds; the
    // second says what all that is not waiting costs.
    idle_for(bench, 0)?;
    let nothing = idle_for(bench, 0)?;
    let percent = 100.0 * (idle_for(bench, SECONDS)? - nothing) / SECONDS as f64;
    ensure!(percent < MOST_PERCENT, "an idle guest used {percent:.1} % of a host core");
    Ok(Outcome::Passed)
}

/// Runs the example and returns the seconds of processor time that took, the emulator's and this tool's. Other cases may
/// run beside it.
fn idle_for(bench: &Bench<'_>, seconds: u64) -> Result<f64> {
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--smp", "4", "--append", &format!("seconds={seconds}")]);
    command.args(["--timeout", &(bench.limit.as_secs() + SECONDS).to_string()]);
    // What it prints fits into a pipe, so it can be read at the end.
    let child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .context("this tool cannot start itself")?;
    let used = seconds_used(&child);
    Said::from(child.wait_with_output().context("it cannot be waited for")?).expect_status(0)?;
    used
}

/// Waits for the end of a child; its processor time, and that of its own children.
#[cfg(target_os = "linux")]
fn seconds_used(child: &Child) -> Result<f64> {
    use nix::sys::wait::{Id, WaitPidFlag, waitid};
    let pid = nix::unistd::Pid::from_raw(child.id().try_into()?);
    // It stays there to be asked.
    waitid(Id::Pid(pid), WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT).context("it cannot be waited for")?;
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).context("Linux's /proc has no account")?;
    // The name in parentheses may hold blanks; from the 12th field after it on come its own times and its children's.
    let (_, fields) = stat.rsplit_once(')').context("the account has no name")?;
    let times: Vec<f64> = fields.split_whitespace().skip(11).take(4).filter_map(|f| f.parse().ok()).collect();
    ensure!(times.len() == 4, "the account has too few fields");
    Ok(times.iter().sum::<f64>() / TICKS_PER_SECOND)
}

/// Not called: see [`waiting`].
#[cfg(not(target_os = "linux"))]
fn seconds_used(_: &Child) -> Result<f64> {
    anyhow::bail!("there is no account of processor time")
}
