//! What only this tree builds: the host's unit tests, and the in-kernel suites as programs for the host.

pub use magpie_xtask::build::{
    Board, Executable, Features, Image, TARGET, Workspace, build_application, build_loader, build_suites,
    cargo, check_output, root, set_root_of, write_flat, write_whole,
};
use magpie_xtask::build::{KERNEL_PACKAGE, build_named};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// The package whose `[[test]]`s are the in-kernel suites.
pub const TESTS_PACKAGE: &str = "magpie-tests";
/// The packages whose unit tests run on the host.
const HOST_PACKAGES: [&str; 11] = [
    "magpie-kernel",
    "magpie-boot",
    "magpie",
    "magpie-dist",
    "magpie-drivers",
    "magpie-net",
    "magpie-node",
    "magpie-random",
    "magpie-loader",
    "magpie-xtask",
    "xtask",
];
/// The packages that are for the host alone.
const TOOL_PACKAGES: [&str; 3] = ["magpie-xtask", "xtask", STEP_PACKAGE];
/// The plugin that holds a guest's cores in step.
const STEP_PACKAGE: &str = "magpie-step";

/// What there is of this tree's packages.
pub trait Packages {
    /// Those whose unit tests run on the host.
    fn host_packages(&self) -> Vec<&str>;
    /// Those that are built for the kernel's target, and apart from them the package of in-kernel suites.
    fn kernel_packages(&self) -> (Vec<&str>, Option<&str>);
}

impl Packages for Workspace {
    fn host_packages(&self) -> Vec<&str> {
        HOST_PACKAGES.into_iter().filter(|name| self.packages().any(|found| found == *name)).collect()
    }

    fn kernel_packages(&self) -> (Vec<&str>, Option<&str>) {
        let all = self.packages().filter(|name| !TOOL_PACKAGES.contains(name));
        let (tests, others): (Vec<_>, Vec<_>) = all.partition(|name| *name == TESTS_PACKAGE);
        (others, tests.first().copied())
    }
}

/// Builds the plugin that holds a guest's cores in step, for this host.
pub fn build_step() -> Result<PathBuf> {
    if !cfg!(target_os = "linux") {
        bail!(
            "cores are held in step on Linux only: the plugin takes the place of a function of its C library"
        );
    }
    let mut command = cargo();
    command.args([
        "build",
        "--quiet",
        "--package",
        STEP_PACKAGE,
        "--message-format",
        "json-render-diagnostics",
    ]);
    let built = command.stderr(Stdio::inherit()).output().context("cargo cannot be started")?;
    if !built.status.success() {
        bail!("building {STEP_PACKAGE} failed; the compiler's messages are above");
    }
    let messages = String::from_utf8_lossy(&built.stdout);
    let mut files = messages.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_plugin = |message: &Value| message["target"]["name"] == "magpie_step";
    let found = files.find(|message| is_plugin(message) && message["filenames"][0].is_string());
    let file = found.and_then(|message| message["filenames"][0].as_str().map(PathBuf::from));
    file.context("cargo built no plugin")
}

/// Builds in-kernel suites as programs for the host, with the `cargo test` that is begun in `command`.
pub fn build_host_suites(mut command: Command, names: &[&str]) -> Result<Vec<Executable>> {
    command.arg("--no-run");
    build_named(command, TESTS_PACKAGE, names, "--test", Features::default())
}

/// The package some of whose tests need Erlang, and are left out where there is none.
pub const ERLANG_PACKAGE: &str = "magpie-dist";

/// The command that runs a package's unit tests on the host.
pub fn host_tests(package: &str, filter: Option<&str>) -> Command {
    let mut command = cargo();
    command.args(["test", "--no-fail-fast", "--package", package]);
    if package == KERNEL_PACKAGE {
        // The checks that the in-kernel suites run, too; and the kernel is that of the suites as programs, so it is built once for both.
        command.args(["--features", "checks,traced"]);
    }
    command.args(filter);
    command
}

#[cfg(test)]
mod tests {
    use super::{HOST_PACKAGES, Packages, Workspace};

    #[test]
    fn what_is_built_where() {
        let workspace = Workspace::load().unwrap();
        assert_eq!(workspace.host_packages(), HOST_PACKAGES);
        let (kernel, tests) = workspace.kernel_packages();
        assert!(kernel.contains(&"hello") && !kernel.contains(&"xtask"), "{kernel:?}");
        assert_eq!(tests, Some("magpie-tests"));
    }
}
