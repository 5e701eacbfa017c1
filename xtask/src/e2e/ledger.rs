//! The example `ledger`: its counter crashes, before a booking is written down and after it, and each is written down once.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Result, ensure};

const EXAMPLE: &str = "ledger";
/// Of 1 to 1000.
const TOTAL: &str = "1000 bookings, 500500 in all; ";

pub const CASES: &[Case] = &[("ledger::a_counter_keeps_its_state", crashes)];

fn crashes(bench: &Bench<'_>) -> Result<Outcome> {
    if bench.workspace.application(EXAMPLE).is_err() {
        return Ok(Outcome::Skipped(format!("there is no application '{EXAMPLE}'")));
    }
    let mut command = tool()?;
    let limit = bench.limit.as_secs().to_string();
    command.args(["qemu", EXAMPLE, "--no-install", "--smp", "3", "--timeout", &limit]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    let text = said.text();
    ensure!(text.contains(TOTAL), "nothing says '{TOTAL}':\n{text}");
    let crashes = text.matches("injected").count();
    ensure!(crashes > 20, "only {crashes} crashes were reported:\n{text}");
    let kept = "ledger was started again 0 times";
    ensure!(text.contains(kept), "nothing says '{kept}':\n{text}");
    // It fails, too, if it comes before the ledger has its name.
    let restarts = text.split("counter was started again ").nth(1).and_then(|rest| rest.split(' ').next());
    let restarts = restarts.and_then(|number| number.parse::<usize>().ok()).unwrap_or(0);
    ensure!(restarts >= crashes, "{restarts} restarts after {crashes} crashes:\n{text}");
    Ok(Outcome::Passed)
}
