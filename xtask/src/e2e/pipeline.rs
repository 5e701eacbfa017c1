//! The example `pipeline`: its stages crash, are started again, and lose nothing.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Result, ensure};

const EXAMPLE: &str = "pipeline";
/// Of the squares of the doubles of 1 to 1000.
const SUM: &str = "1000 numbers, 1335334000 in all; ";

pub const CASES: &[Case] = &[("pipeline::what_crashes_is_started_again", crashes)];

fn crashes(bench: &Bench<'_>) -> Result<Outcome> {
    if bench.workspace.application(EXAMPLE).is_err() {
        return Ok(Outcome::Skipped(format!("there is no application '{EXAMPLE}'")));
    }
    let mut command = tool()?;
    command.args([
        "qemu",
        EXAMPLE,
        "--no-install",
        "--smp",
        "4",
        "--timeout",
        &bench.limit.as_secs().to_string(),
    ]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    let text = said.text();
    ensure!(text.contains(SUM), "nothing says '{SUM}':\n{text}");
    let crashes = text.matches("injected").count();
    ensure!(crashes > 20, "only {crashes} crashes were reported:\n{text}");
    Ok(Outcome::Passed)
}
