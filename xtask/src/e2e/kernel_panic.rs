//! A panic of the real kernel ends the whole command with failure and its message. It needs an example
//! named `panic`.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::Result;

/// The example that panics on purpose.
const EXAMPLE: &str = "panic";

pub const CASES: &[Case] = &[("kernel_panic::ends_with_failure_and_its_message", panics)];

fn panics(bench: &Bench<'_>) -> Result<Outcome> {
    if !bench.workspace.examples().contains(&EXAMPLE) {
        return Ok(Outcome::Skipped(format!("there is no example '{EXAMPLE}'")));
    }
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--timeout", &bench.limit.as_secs().to_string()]);
    Said::of(command)?.expect_status(1)?.expect_error("the kernel panicked: ")?;
    Ok(Outcome::Passed)
}
