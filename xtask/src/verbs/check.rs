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

    /// Lints alone, in the form that cargo calls so: what an editor reads
    #[arg(long, value_name = "FORMAT", conflicts_with_all = ["rooms", "errors"])]
    message_format: Option<String>,
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
    if let Some(format) = &options.message_format {
        return Ok(if lints(&workspace, Reader::Program(format))?.is_empty() { SUCCESS } else { FAILURE });
    }
    let mut bad = Vec::new();

    eprintln!("xtask: check: rooms");
    if !rooms::check(Detail::Complaints)? {
        bad.push("rooms (see kernel/rooms.txt)".to_owned());
    }
    eprintln!("xtask: check: examples");
    if !face::check()? {
        bad.push("examples (see xtask/src/face/mod.rs)".to_owned());
    }
    eprintln!("xtask: check: formatting");
    if !run(&["fmt", "--all", "--check"], &[], Reader::Person)? {
        bad.push("formatting (mend it with 'cargo fmt --all')".to_owned());
    }
    bad.extend(lints(&workspace, Reader::Person)?.into_iter().map(|what| format!("lints of the {what}")));
    eprintln!("xtask: check: documentation");
    if !rustdoc::check()? {
        bad.push("documentation (cargo doc)".to_owned());
    }
    if bad.is_empty() {
        eprintln!("xtask: check: no complaints");
        return Ok(SUCCESS);
    }
    eprintln!("xtask: check failed: {}", bad.join(", "));
    Ok(FAILURE)
}

/// Who reads what clippy says.
#[derive(Clone, Copy)]
enum Reader<'a> {
    Person,
    /// An editor, which shows warnings as what they are: in this form of cargo's.
    Program(&'a str),
}

/// Clippy for the host and for the kernel's target; what it complained about.
fn lints(workspace: &Workspace, reader: Reader<'_>) -> Result<Vec<&'static str>> {
    let (kernel, tests) = workspace.kernel_packages();
    // What only the other board's image has.
    let boot = kernel.iter().copied().filter(|package| *package == "magpie-boot").collect();
    // Unit tests of the kernel's packages are built for the host; the in-kernel suites for the target.
    let rounds: [(&str, &[&str], Vec<&str>); 4] = [
        ("host's packages", &["--all-targets"], workspace.host_packages()),
        ("kernel's packages", &["--release", "--target", TARGET], kernel),
        ("Raspberry Pi 4's boot", &["--release", "--target", TARGET, "--features", "rpi4"], boot),
        ("in-kernel tests", &["--release", "--target", TARGET, "--tests"], tests.into_iter().collect()),
    ];
    let mut bad = Vec::new();
    for (what, options, packages) in rounds {
        if packages.is_empty() {
            continue;
        }
        eprintln!("xtask: check: lints of the {what}");
        if !run(&[&["clippy"], options].concat(), &packages, reader)? {
            bad.push(what);
        }
    }
    Ok(bad)
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
fn run(arguments: &[&str], packages: &[&str], reader: Reader<'_>) -> Result<bool> {
    let mut command = cargo();
    command.args(arguments);
    for package in packages {
        command.args(["--package", package]);
    }
    match reader {
        Reader::Program(format) => drop(command.arg(format!("--message-format={format}"))),
        Reader::Person if arguments.first() == Some(&"clippy") => {
            command.args(["--quiet", "--", "--deny", "warnings"]);
        }
        Reader::Person => {}
    }
    Ok(command.status().context("cargo cannot be started")?.success())
}
