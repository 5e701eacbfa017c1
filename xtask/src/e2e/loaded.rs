//! A busy host is no reason for a test to fail: the checks whose cores wait for each other most, on more cores than the
//! host has processors, beside busy loops.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Result, ensure};

pub const CASES: &[Case] = &[("loaded::cores_that_wait_for_each_other", waiting)];

fn waiting(_: &Bench<'_>) -> Result<Outcome> {
    for check in ["bodies::idle_flag", "bodies::deque"] {
        let mut command = tool()?;
        // One build is enough, and this is the one whose spins take longest.
        command.args(["test", "--loaded", "--kernel", "asm", "--smp", "7", "--portable", "--no-install"]);
        command.args(["--filter", check]);
        let said = Said::of(command)?;
        said.expect_status(0)?.expect_line("1 passed, 0 failed")?;
        let loops = said.text().lines().any(|line| line.starts_with("the host is made busy with "));
        ensure!(loops, "the host was not made busy\n{}", said.text());
    }
    Ok(Outcome::Passed)
}
