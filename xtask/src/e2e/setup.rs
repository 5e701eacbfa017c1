//! What is missing is named with the command that installs it, and is not installed against orders.

use super::fixture::fixture;
use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result};
use std::fs;
use std::os::unix::fs::PermissionsExt;

pub const CASES: &[Case] = &[
    ("setup::missing_qemu_is_named_with_every_command", missing_qemu),
    ("setup::old_qemu_is_refused", old_qemu),
    ("setup::doctor_names_every_part", doctor),
];

fn run_with(bench: &Bench<'_>, qemu: &str) -> Result<Said> {
    let mut command = tool()?;
    command.arg("runner").arg(fixture(bench, "success")?);
    command.env("MAGPIE_QEMU", qemu).env("MAGPIE_NO_INSTALL", "1");
    Said::of(command)
}

fn missing_qemu(bench: &Bench<'_>) -> Result<Outcome> {
    let said = run_with(bench, "/no/such/qemu")?;
    said.expect_status(2)?;
    for command in ["apt-get install", "dnf install", "pacman -S", "brew install qemu"] {
        said.expect_error(command)?;
    }
    Ok(Outcome::Passed)
}

fn old_qemu(bench: &Bench<'_>) -> Result<Outcome> {
    let path = bench.folder.join("qemu-that-is-old");
    fs::write(&path, "#!/bin/sh\necho 'QEMU emulator version 6.2.0'\n").context("cannot write the script")?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("cannot make it executable")?;
    let said = run_with(bench, &path.to_string_lossy())?;
    said.expect_status(2)?.expect_error("version 6.2, but 7.0 or newer is needed")?;
    Ok(Outcome::Passed)
}

fn doctor(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.arg("doctor");
    let said = Said::of(command)?;
    // The end-to-end tests run only where everything for `virt` is there; raspi4b may be missing.
    let text = said.text();
    for part in ["rustc", "target", "rustfmt", "clippy", "QEMU", "machine virt     yes", "machine raspi4b"] {
        anyhow::ensure!(text.contains(part), "'{part}' is missing\n{text}");
    }
    Ok(Outcome::Passed)
}
