//! What waiting costs the host: a guest whose four cores have nothing to do must leave the host alone.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use std::fs;

/// It sleeps for as long as the boot argument `seconds` says.
const EXAMPLE: &str = "idle";
const SECONDS: u64 = 10;
/// Hundredths of one host core, at most. About one was measured.
const MOST_PERCENT: f64 = 5.0;
/// Linux counts processor time for `/proc` in hundredths of a second.
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

/// Runs the example and returns the seconds of processor time that took, the emulator's and this tool's.
fn idle_for(bench: &Bench<'_>, seconds: u64) -> Result<f64> {
    let before = childrens_seconds()?;
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--smp", "4", "--append", &format!("seconds={seconds}")]);
    command.args(["--timeout", &(bench.limit.as_secs() + SECONDS).to_string()]);
    Said::of(command)?.expect_status(0)?;
    Ok(childrens_seconds()? - before)
}

/// Processor time of the children that have ended, and of theirs.
fn childrens_seconds() -> Result<f64> {
    let stat = fs::read_to_string("/proc/self/stat").context("cannot read /proc/self/stat")?;
    // The name in parentheses may hold blanks; the 14th and 15th field after it are the children's times.
    let (_, fields) = stat.rsplit_once(')').context("/proc/self/stat has no name")?;
    let times: Vec<f64> = fields.split_whitespace().skip(13).take(2).filter_map(|f| f.parse().ok()).collect();
    ensure!(times.len() == 2, "/proc/self/stat has too few fields");
    Ok((times[0] + times[1]) / TICKS_PER_SECOND)
}
