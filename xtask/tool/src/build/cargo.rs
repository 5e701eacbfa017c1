//! Runs cargo for what is built for the kernel's target.

use super::board::Board;
use super::workspace::{Workspace, folder_of, root};
use crate::progress;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::ffi::OsString;
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
    /// It sends traces and statistics if it is asked to.
    pub traced: bool,
}

impl Features {
    /// The folder of programs that are built so, below the workspace's own; none for the usual ones.
    fn folder(self) -> Option<String> {
        let named =
            [(self.board == Board::Rpi4, "rpi4"), (self.uncounted, "uncounted"), (self.traced, "traced")];
        let names: Vec<_> = named.into_iter().filter(|(is_it, _)| *is_it).map(|(_, name)| name).collect();
        (!names.is_empty()).then(|| names.join("-"))
    }

    /// What cargo needs for that: what all of them share is built once, and programs of one name do not replace each other.
    fn folder_arguments(self, workspace: &Workspace) -> Vec<OsString> {
        let Some(folder) = self.folder() else { return Vec::new() };
        let build = format!("build.build-dir={:?}", workspace.build().display().to_string());
        vec!["--target-dir".into(), workspace.target().join(folder).into(), "--config".into(), build.into()]
    }
}

/// Something that cargo built.
#[derive(Debug, PartialEq, Eq)]
pub struct Executable {
    /// The target's name: an example's, a suite's.
    pub name: String,
    /// The ELF.
    pub path: PathBuf,
}

/// The cargo that runs this tool, in the workspace's root.
pub fn cargo() -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(root());
    command
}

/// Builds an application, optimised.
pub fn build_application(name: &str, features: Features) -> Result<PathBuf> {
    let mut command = cargo();
    let workspace = Workspace::load()?;
    let package = workspace.package_of_application(name).unwrap_or(name);
    command.args(["build", "--release", "--target", TARGET, "--package", package, "--bin", name]);
    program(run_build(command, features, package)?, name)
}

fn program(built: Vec<Executable>, name: &str) -> Result<PathBuf> {
    let found = built.into_iter().find(|executable| executable.name == name);
    found.map(|executable| executable.path).with_context(|| format!("cargo built no program {name}"))
}

/// The chain loader, as a command names it.
pub const LOADER: &str = "loader";
const LOADER_PACKAGE: &str = "magpie-loader";

/// Builds the chain loader, which is linked by a script of its own, wherever its package is.
pub fn build_loader() -> Result<PathBuf> {
    let folder = folder_of(LOADER_PACKAGE)?;
    let mut command = cargo();
    command.args(["build", "--release", "--target", TARGET, "--bin", LOADER]);
    command.arg("--manifest-path").arg(folder.join("Cargo.toml"));
    command.arg("--target-dir").arg(Workspace::load()?.target().join(LOADER));
    // In place of the flags that every other image is linked with.
    command.env_remove("RUSTFLAGS");
    command.env("CARGO_ENCODED_RUSTFLAGS", format!("-Clink-arg=-T{}", folder.join("loader.ld").display()));
    program(run_build(command, Features::default(), LOADER_PACKAGE)?, LOADER)
}

/// Builds a package's in-kernel suites.
pub fn build_suites(package: &str, names: &[&str], features: Features) -> Result<Vec<Executable>> {
    let mut command = cargo();
    command.args(["test", "--no-run", "--profile", SUITE_PROFILE, "--target", TARGET]);
    build_named(command, package, names, "--test", features)
}

/// What suites are built with, in this tree and in a project.
const SUITE_PROFILE: &str = "kernel-test";

/// Builds a package's in-kernel benchmarks, as an application is built.
pub fn build_benches(package: &str, names: &[&str]) -> Result<Vec<Executable>> {
    let mut command = cargo();
    command.args(["build", "--release", "--target", TARGET]);
    build_named(command, package, names, "--bench", Features::default())
}

/// Builds named tests or benchmarks of a package, with a command that is begun.
pub fn build_named(
    mut command: Command,
    package: &str,
    names: &[&str],
    option: &str,
    features: Features,
) -> Result<Vec<Executable>> {
    command.args(["--package", package]);
    for name in names {
        command.args([option, name]);
    }
    let mut built = run_build(command, features, package)?;
    built.retain(|executable| names.contains(&executable.name.as_str()));
    built.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(built)
}

/// Runs a build whose compiler messages appear as usual, and collects the programs it made.
fn run_build(mut command: Command, features: Features, package: &str) -> Result<Vec<Executable>> {
    let workspace = Workspace::load()?;
    command.args(features.folder_arguments(&workspace));
    let rpi4 = features.board == Board::Rpi4;
    for (wanted, feature) in [
        (rpi4, "rpi4"),
        (features.portable, "portable"),
        (features.uncounted, "uncounted"),
        (features.traced, "traced"),
    ] {
        if wanted {
            command.args(["--features", &workspace.feature_of(package, feature)]);
        }
    }
    if features.forced_failure {
        command.args(["--features", &format!("{package}/forced-failure")]);
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
    use super::{Board, Executable, Features, executable};

    #[test]
    fn programs_that_are_built_differently_have_folders_of_their_own() {
        let usual = Features::default();
        assert_eq!(usual.folder(), None);
        assert_eq!(Features { board: Board::Rpi4, ..usual }.folder().as_deref(), Some("rpi4"));
        assert_eq!(Features { uncounted: true, ..usual }.folder().as_deref(), Some("uncounted"));
        let both = Features { board: Board::Rpi4, traced: true, ..usual };
        assert_eq!(both.folder().as_deref(), Some("rpi4-traced"));
    }

    #[test]
    fn picks_programs_from_cargos_report() {
        let line = r#"{"reason":"compiler-artifact","target":{"name":"sched"},"executable":"/t/sched-1"}"#;
        assert_eq!(executable(line), Some(Executable { name: "sched".into(), path: "/t/sched-1".into() }));
        let library = r#"{"reason":"compiler-artifact","target":{"name":"magpie"},"executable":null}"#;
        assert_eq!(executable(library), None);
        assert_eq!(executable("warning: unused"), None);
    }
}
