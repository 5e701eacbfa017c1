//! `cargo xtask check`: formatting, lints with warnings denied, the kernel's rooms, and examples in the docs of what
//! applications name.
//!
//! Packages that build for the host are checked there, packages of the kernel for its target as well. All
//! problems are shown, not the first alone.

mod rustdoc;

use crate::build::{Packages, TARGET, Workspace, cargo};
use crate::face;
use crate::failure::{FAILURE, SUCCESS};
use crate::rooms::{self, Detail};
use crate::setup::{Install, ready_components, ready_target};
use anyhow::{Context, Result};
use clap::Args;

/// What `cargo xtask check` accepts.
#[derive(Args)]
pub struct Options {
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,

    /// Check the kernel's rooms alone, and print what each imports, and the circles
    #[arg(long)]
    rooms: bool,

    /// With --rooms: print what each file imports, too
    #[arg(long, requires = "rooms")]
    files: bool,

    /// Check alone what the compiler says to natural mistakes (magpie/tests/errors)
    #[arg(long)]
    errors: bool,

    /// With --errors: keep what it says now
    #[arg(long, requires = "errors")]
    renew: bool,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    if options.rooms {
        let detail = if options.files { Detail::Files } else { Detail::Rooms };
        return Ok(if rooms::check(detail)? { SUCCESS } else { FAILURE });
    }
    let install = Install::unless(options.no_install);
    if options.errors {
        ready_target(install)?;
        return explains_mistakes(options.renew);
    }
    ready_components(install)?;
    ready_target(install)?;
    let workspace = Workspace::load()?;
    let mut bad = Vec::new();

    eprintln!("xtask: check: rooms");
    if !rooms::check(Detail::Complaints)? {
        bad.push("rooms (see kernel/rooms.txt)");
    }
    eprintln!("xtask: check: examples");
    if !face::check()? {
        bad.push("examples (see xtask/src/face/mod.rs)");
    }
    if !run("formatting", &["fmt", "--all", "--check"], &[])? {
        bad.push("formatting (mend it with 'cargo fmt --all')");
    }
    let host = workspace.host_packages();
    if !run("lints, host", &["clippy", "--all-targets"], &host)? {
        bad.push("lints of the host's packages");
    }
    let (kernel, tests) = workspace.kernel_packages();
    let clippy = ["clippy", "--release", "--target", TARGET];
    // Unit tests of the kernel's packages are built for the host; the in-kernel suites for the target.
    if !kernel.is_empty() && !run("lints, kernel", &clippy, &kernel)? {
        bad.push("lints of the kernel's packages");
    }
    // What only the other board's image has.
    let boot: Vec<_> = kernel.iter().copied().filter(|package| *package == "magpie-boot").collect();
    if !boot.is_empty()
        && !run("lints, Raspberry Pi 4", &[&clippy[..], &["--features", "rpi4"]].concat(), &boot)?
    {
        bad.push("lints of boot for the Raspberry Pi 4");
    }
    if let Some(tests) = tests
        && !run("lints, in-kernel tests", &[&clippy[..], &["--tests"]].concat(), &[tests])?
    {
        bad.push("lints of the in-kernel tests");
    }
    eprintln!("xtask: check: documentation");
    if !rustdoc::check()? {
        bad.push("documentation (cargo doc)");
    }
    if bad.is_empty() {
        eprintln!("xtask: check: no complaints");
        return Ok(SUCCESS);
    }
    eprintln!("xtask: check failed: {}", bad.join(", "));
    Ok(FAILURE)
}

/// Compares what the compiler says to natural mistakes with what is kept, or keeps it. Part of the host's tests, too.
fn explains_mistakes(renew: bool) -> Result<u8> {
    let mut command = cargo();
    command.args(["test", "--quiet", "--package", "magpie", "--test", "errors"]);
    if renew {
        command.env("MAGPIE_RENEW", "1");
    }
    let is_content = command.status().context("cargo cannot be started")?.success();
    Ok(if is_content { SUCCESS } else { FAILURE })
}

/// Runs one cargo command on packages; whether it was content.
fn run(what: &str, arguments: &[&str], packages: &[&str]) -> Result<bool> {
    eprintln!("xtask: check: {what}");
    let mut command = cargo();
    command.args(arguments);
    for package in packages {
        command.args(["--package", package]);
    }
    if arguments.first() == Some(&"clippy") {
        command.args(["--quiet", "--", "--deny", "warnings"]);
    }
    Ok(command.status().context("cargo cannot be started")?.success())
}
