//! A project of one's own: made outside this tree, booted, and tested in the kernel and on the host, as its README says.
//!
//! Not in a folder of this tree: cargo would read this tree's configuration there as well.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, bail};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub const CASES: &[Case] = &[("project::is_made_booted_and_tested", made)];

/// A folder elsewhere, removed in the end.
struct Elsewhere(PathBuf);

impl Elsewhere {
    fn new() -> Result<Self> {
        let folder = std::env::temp_dir().join(format!("magpie-project-{}", std::process::id()));
        fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
        Ok(Self(folder))
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // What cannot be removed is in the folder for what is temporary.
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn made(bench: &Bench<'_>) -> Result<Outcome> {
    let elsewhere = Elsewhere::new()?;
    let folder = elsewhere.0.join("my-app");
    let mut new = tool()?;
    new.arg("new").arg(&folder);
    Said::of(new)?.expect_status(0)?.expect_line("  cargo run       boots it on QEMU")?;
    let limit = bench.limit.as_secs().to_string();

    // What cargo prints goes to standard error; what the guest prints comes decoded.
    let runs = cargo(&folder, &["run"], &limit)?;
    runs.expect_status(0)?.expect_line("the sum is 42")?;
    if !runs.text().starts_with("--- Magpie: my_app on virt, 4 cores") {
        bail!("the guest does not begin as others do\n{}", runs.text());
    }
    cargo(&folder, &["test"], &limit)?
        .expect_status(0)?
        .expect_line("tests: 1 passed, 0 failed, 0 skipped")?;
    cargo(&folder, &["host"], &limit)?.expect_status(0)?.expect_line("test it_counts ... ok")?;

    let test = folder.join("tests/kernel.rs");
    let text = fs::read_to_string(&test).context("the project has no test")?;
    fs::write(&test, text.replace("42, \"the sum\"", "43, \"the sum\"")).context("it cannot be changed")?;
    let fails = cargo(&folder, &["test"], &limit)?;
    if fails.status == Some(0) || !fails.text().contains("the sum: found 42, expected 43") {
        bail!("a wrong expectation is not shown\n{}\n{}", fails.text(), fails.err);
    }
    Ok(Outcome::Passed)
}

fn cargo(folder: &Path, arguments: &[&str], limit: &str) -> Result<Said> {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(folder).stdin(Stdio::null());
    command.env("MAGPIE_TIMEOUT", limit).env("MAGPIE_NO_INSTALL", "1");
    Ok(command.output().context("cargo cannot be started")?.into())
}
