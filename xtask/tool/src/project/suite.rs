//! A suite of a project, as the program that `cargo test` runs on the host: it boots the suite in the kernel.

use super::bench;
use crate::build::{Features, Workspace, build_suites, set_root_of};
use crate::failure;
use crate::setup::{Install, ready_target};
use crate::verbs::runner;
use anyhow::{Context, Result};
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

/// Ends a suite's file beside `magpie_test::suite!`: on the host, `cargo test` has it booted in the kernel. Of a `[[bench]]` it does
/// what `cargo xtask bench` does.
///
/// ```ignore
/// #[cfg(target_os = "none")]
/// magpie_test::suite!();
/// #[cfg(not(target_os = "none"))]
/// magpie_xtask::suite!();
/// ```
#[macro_export]
macro_rules! suite {
    () => {
        fn main() -> std::process::ExitCode {
            $crate::project::run_suite(
                env!("CARGO_MANIFEST_DIR"),
                env!("CARGO_PKG_NAME"),
                env!("CARGO_CRATE_NAME"),
            )
        }
    };
}

/// Builds a suite for the kernel and boots it, with the arguments behind `--`; for the macro.
pub fn run_suite(folder: &str, package: &str, name: &str) -> ExitCode {
    failure::end_quietly_when_unheard();
    set_root_of(Path::new(folder));
    failure::exit(boot(package, name))
}

/// A test that has no result by then hangs, and fails by its name. So it is less than the limit of all.
const TEST_SECONDS: u64 = 240;
/// How long a suite may take, as in `cargo xtask test`.
const LIMIT: Duration = Duration::from_secs(1200);

fn boot(package: &str, name: &str) -> Result<u8> {
    let workspace = Workspace::load()?;
    // The crate is called as the target, but for hyphens.
    let is_it = |found: &str| found.replace('-', "_") == name;
    if workspace.benches().iter().any(|(of, bench)| *of == package && is_it(bench)) {
        return bench::usual();
    }
    let suites = workspace.suites();
    let name = suites.into_iter().find(|suite| is_it(suite)).context("cargo does not know this suite")?;
    ready_target(Install::unless(runner::never_installs()))?;
    let built = build_suites(package, &[name], Features::default())?;
    let elf = &built.first().context("cargo built no program for it")?.path;
    let mut arguments: Vec<_> = std::env::args().skip(1).collect();
    if !arguments.iter().any(|argument| argument.starts_with("timeout=")) {
        arguments.push(format!("timeout={TEST_SECONDS}"));
    }
    runner::boot(elf, None, &arguments, LIMIT)
}
