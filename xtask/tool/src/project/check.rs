//! A project's `cargo xtask check`: formatting, and lints for this machine and for the kernel's. An editor asks for the lints
//! alone, in cargo's JSON.

use crate::build::{TARGET, Workspace, cargo};
use crate::failure::{FAILURE, SUCCESS};
use crate::setup::{Install, ready_components, ready_target};
use anyhow::{Context, Result};
use clap::Args;

/// What it accepts.
#[derive(Args)]
pub struct Options {
    /// Lints alone, in the form that cargo calls so: what an editor reads
    #[arg(long, value_name = "FORMAT")]
    message_format: Option<String>,
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    let install = Install::unless(options.no_install);
    ready_components(install)?;
    ready_target(install)?;
    let workspace = Workspace::load()?;
    let mut clippy = vec!["clippy".to_owned()];
    clippy.extend(options.message_format.iter().map(|format| format!("--message-format={format}")));
    let is_tidy = options.message_format.is_some() || run(&["fmt", "--all", "--check"].map(str::to_owned))?;
    let host = [&clippy[..], &["--workspace", "--all-targets"].map(str::to_owned)].concat();
    let mut is_clean = run(&host)?;
    if is_clean {
        // Where the host's compiler complains, the kernel's would say the same.
        for line in kernel_lines(&workspace, &clippy) {
            is_clean &= run(&line)?;
        }
    }
    Ok(if is_tidy && is_clean { SUCCESS } else { FAILURE })
}

/// The same for the kernel's target: programs, suites and benchmarks.
fn kernel_lines(workspace: &Workspace, clippy: &[String]) -> Vec<Vec<String>> {
    let line = |package: &str, kind: &str, name: &str| {
        let words = ["--target", TARGET, "--package", package, kind, name].map(str::to_owned);
        [clippy, &words].concat()
    };
    let mut lines = Vec::new();
    for name in workspace.applications() {
        lines.extend(workspace.package_of_application(name).map(|package| line(package, "--bin", name)));
    }
    for name in workspace.suites() {
        lines.extend(workspace.package_of_suite(name).map(|package| line(package, "--test", name)));
    }
    lines.extend(workspace.benches().into_iter().map(|(package, name)| line(package, "--bench", name)));
    lines
}

fn run(arguments: &[String]) -> Result<bool> {
    let mut command = cargo();
    command.args(arguments);
    // An editor shows warnings as what they are.
    let is_read_by_program = arguments.iter().any(|word| word.starts_with("--message-format"));
    if arguments.first().is_some_and(|verb| verb == "clippy") && !is_read_by_program {
        command.args(["--quiet", "--", "--deny", "warnings"]);
    }
    Ok(command.status().context("cargo cannot be started")?.success())
}
