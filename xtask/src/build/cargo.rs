//! Runs cargo for what is built for the kernel's target and for the host's unit tests.

use super::board::Board;
use super::workspace::{TESTS_PACKAGE, Workspace, root};
use crate::progress;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// The kernel itself.
pub const KERNEL_PACKAGE: &str = "magpie-kernel";
/// The kernel's target.
pub const TARGET: &str = "aarch64-unknown-none";

/// What may be switched on in a build.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Features {
    /// The board it is for.
    pub board: Board,
    /// The portable primitives in place of the hand-written exclusives.
    pub portable: bool,
    /// Store-exclusives of the deque and the double swap that fail on demand; in-kernel suites alone.
    pub forced_failure: bool,
    /// No statistics.
    pub uncounted: bool,
}

/// Something that cargo built.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    /// The target's name: an example's, a suite's.
    pub name: String,
    /// The ELF.
    pub path: PathBuf,
}

/// The cargo that runs this tool, in the project's root.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds an example, optimised.
pub fn build_example(name: &str, features: Features) -> Result<PathBuf> {
    let mut command = cargo();
    let workspace = Workspace::load()?;
    let package = workspace.package_of_example(name).unwrap_or(name);
    command.args(["build", "--release", "--target", TARGET, "--package", package, "--bin", name]);
    let built = run_build(command, features, package)?;
    let found = built.into_iter().find(|executable| executable.name == name);
    found
        .map(|executable| executable.path)
        .with_context(|| format!("the package {package} builds no program {name}"))
}

/// The chain loader's package.
pub const LOADER: &str = "loader";

/// Builds the chain loader, which is linked by a script of its own.
pub fn build_loader() -> Result<PathBuf> {
    let mut command = cargo();
    command.args([
        "build",
        "--release",
        "--target",
        TARGET,
        "--package",
        LOADER,
        "--target-dir",
        "target/loader",
    ]);
    // In place of the flags that every other image is linked with.
    command.env("RUSTFLAGS", "-Clink-arg=-Tloader/loader.ld");
    let built = run_build(command, Features::default(), LOADER)?;
    let found = built.into_iter().find(|executable| executable.name == LOADER);
    found.map(|executable| executable.path).context("the loader's package builds no program")
}

/// Builds in-kernel suites (all of them when none is named).
pub fn build_suites(names: &[&str], features: Features) -> Result<Vec<Executable>> {
    let mut command = cargo();
    command.args(["test", "--no-run", "--profile", "kernel-test", "--target", TARGET]);
    command.args(["--package", TESTS_PACKAGE]);
    for name in names {
        command.args(["--test", name]);
    }
    let mut built = run_build(command, features, TESTS_PACKAGE)?;
    built.retain(|executable| names.contains(&executable.name.as_str()));
    built.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(built)
}

/// Builds in-kernel suites as programs for the host, with the `cargo test` that is begun in `command`.
pub fn build_host_suites(mut command: Command, names: &[&str]) -> Result<Vec<Executable>> {
    command.args(["--no-run", "--package", TESTS_PACKAGE]);
    for name in names {
        command.args(["--test", name]);
    }
    let mut built = run_build(command, Features::default(), TESTS_PACKAGE)?;
    built.retain(|executable| names.contains(&executable.name.as_str()));
    built.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(built)
}

/// The command that runs a package's unit tests on the host.
pub fn host_tests(package: &str, filter: Option<&str>) -> Command {
    let mut command = cargo();
    command.args(["test", "--no-fail-fast", "--package", package]);
    if package == KERNEL_PACKAGE {
        // The checks that the in-kernel suites run, too.
        command.args(["--features", "checks"]);
    }
    command.args(filter);
    command
}

/// Runs a build whose compiler messages appear as usual, and collects the programs it made.
fn run_build(mut command: Command, features: Features, package: &str) -> Result<Vec<Executable>> {
    command.args(features.board.cargo_arguments());
    let rpi4 = features.board == Board::Rpi4;
    for (wanted, feature) in
        [(rpi4, "rpi4"), (features.portable, "portable"), (features.uncounted, "uncounted")]
    {
        if wanted {
            command.args(["--features", &Workspace::load()?.feature_of(package, feature)]);
        }
    }
    if features.forced_failure {
        command.args(["--features", "magpie-tests/forced-failure"]);
    }
    command.arg("--message-format=json-render-diagnostics");
    // defmt decides at compile time what is logged; the user's own choice comes first.
    if std::env::var_os("DEFMT_LOG").is_none() {
        command.env("DEFMT_LOG", "info");
    }
    let output = progress::output(&mut command).context("cargo cannot be started; is Rust installed?")?;
    if !output.status.success() {
        bail!("building {package} failed; the compiler's messages are above");
    }
    Ok(String::from_utf8_lossy(&output.stdout).lines().filter_map(executable).collect())
}

/// Reads one line of cargo's report.
fn executable(line: &str) -> Option<Executable> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["reason"] != "compiler-artifact" {
        return None;
    }
    Some(Executable {
        name: message["target"]["name"].as_str()?.to_owned(),
        path: message["executable"].as_str()?.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::{Executable, executable};

    #[test]
    fn picks_programs_from_cargos_report() {
        let line = r#"{"reason":"compiler-artifact","target":{"name":"sched"},"executable":"/t/sched-1"}"#;
        assert_eq!(executable(line), Some(Executable { name: "sched".into(), path: "/t/sched-1".into() }));
        let library = r#"{"reason":"compiler-artifact","target":{"name":"magpie"},"executable":null}"#;
        assert_eq!(executable(library), None);
        assert_eq!(executable("warning: unused"), None);
    }
}
