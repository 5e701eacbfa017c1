//! Builds the fixture guest (`xtask/fixtures/guest.rs`) with rustc alone.

use super::Bench;
use crate::build::{TARGET, root};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

/// The guest that ends so: `success`, `failure`, `panic` or `hang`.
pub fn fixture(bench: &Bench<'_>, ending: &str) -> Result<PathBuf> {
    /// What this run has built. Held while another is built, so that nobody finds half of one.
    static BUILT: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = root().join("xtask/fixtures");
    let elf = bench.common.join(format!("guest-{ending}"));
    if built.contains(ending) {
        return Ok(elf);
    }
    let output = Command::new("rustc")
        .current_dir(root())
        .args(["--edition=2024", "--target", TARGET, "-Copt-level=2", "-Cpanic=abort"])
        .arg(format!("--cfg=ending=\"{ending}\""))
        .arg("--check-cfg=cfg(ending,values(\"success\",\"failure\",\"panic\",\"hang\"))")
        .arg(format!("-Clink-arg=-T{}", folder.join("guest.ld").display()))
        .arg("-o")
        .arg(&elf)
        .arg(folder.join("guest.rs"))
        .output()
        .context("rustc cannot be started")?;
    if !output.status.success() {
        bail!("the fixture guest does not build\n{}", String::from_utf8_lossy(&output.stderr));
    }
    built.insert(ending.to_owned());
    Ok(elf)
}
