//! The proofs of `cargo xtask verify`, each a program that cargo builds and runs: loom, shuttle, litmus,
//! liveness, miri, ThreadSanitizer.
//!
//! The models, the litmus tests and liveness count for themselves and end with `N passed, N failed`; the rest speak
//! as libtest does. A proof whose tool is missing is skipped once, with the reason. A proof that printed no
//! count has failed, whatever its exit status says.

use super::Tally;
use super::host::parse_libtest;
use super::host_suites::{HOST_SUITES, run_host_suite};
use crate::build::{Workspace, build_host_suites, cargo, root};
use crate::mutants::write_copy;
use crate::progress::{self, say};
use anyhow::{Context, Result};
use std::process::{Command, Stdio};
use std::time::Instant;

/// A model checker that stands in for the atomics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checker {
    /// Interleavings and orderings.
    Loom,
    /// Random interleavings.
    Shuttle,
}

impl Checker {
    /// Its name, which is also the `cfg` that selects it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Loom => "loom",
            Self::Shuttle => "shuttle",
        }
    }
}

/// The profile of what a checker runs: fast enough, and built in half the time.
const PROFILE: &str = "proof";

/// How much of the models is run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// The kernel itself alone; its models with at most two preemptions.
    Bounded,
    /// The table's bounds, and every mutant.
    Full,
}

/// Begins a test of the kernel under a checker: of the kernel itself, or of the copy that holds every mutant.
fn kernel_test(checker: Checker, depth: Depth, name: &str) -> Result<Command> {
    let mut command = cargo();
    command.args(["test", "--profile", PROFILE, "--test", name]);
    match depth {
        Depth::Bounded => command.args(["--package", "magpie-kernel"]),
        Depth::Full => command.arg("--manifest-path").arg(write_copy()?),
    };
    // A folder of its own, or the atomics' change would build everything anew each time.
    command.arg("--target-dir").arg(Workspace::load()?.target().join(checker.name()));
    command.env("RUSTFLAGS", format!("--cfg {}", checker.name()));
    Ok(command)
}

/// Runs the models under a checker.
pub fn run_models(checker: Checker, depth: Depth) -> Result<Tally> {
    let mut command = kernel_test(checker, depth, "models")?;
    match depth {
        Depth::Bounded => command.env("MAGPIE_PREEMPTIONS", "2"),
        Depth::Full => command.args(["--", "--mutants"]),
    };
    run(checker.name(), command, parse_count)
}

/// Broken copies that the simulation must reject within [`MUTANT_SEEDS`].
const SIMULATED_MUTANTS: [&str; 4] =
    ["inbox-take-in-two", "inbox-push-unasked", "spin-take-in-two", "swap-no-restore"];
const MUTANT_SEEDS: u64 = 600;

/// Simulates the real scheduler and executor with so many seeds from `first` on; in full also the broken copies.
pub fn run_simulation(first: u64, seeds: u64, depth: Depth) -> Result<Tally> {
    let simulate = |mutant: &str, first: u64, seeds: u64| {
        let mut command = kernel_test(Checker::Shuttle, depth, "simulation")?;
        command.args(["--features", "checks"]).env("MAGPIE_MUTANT", mutant);
        command.args(["--", "--seed", &first.to_string(), "--seeds", &seeds.to_string()]);
        let name = if mutant.is_empty() { "simulation".into() } else { format!("simulation, {mutant}") };
        run(&name, command, parse_count)
    };
    let mut total = simulate("", first, seeds)?;
    if depth == Depth::Full {
        for mutant in SIMULATED_MUTANTS {
            total.add(simulate(mutant, 1, MUTANT_SEEDS)?);
        }
    }
    Ok(total)
}

/// Runs the litmus tests, if herd7 is here.
pub fn run_litmus() -> Result<Tally> {
    let herd = std::env::var("HERD7").unwrap_or_else(|_| "herd7".to_owned());
    let mut words = herd.split_whitespace();
    let found = words.next().is_some_and(|program| {
        let version = Command::new(program).args(words).arg("-version").stdin(Stdio::null()).output();
        version.is_ok_and(|output| output.status.success())
    });
    if !found {
        return Ok(skip(
            "litmus",
            "herd7 is not here: install herdtools7 (Debian's unstable suite has it) or name the command in HERD7",
        ));
    }
    let mut command = cargo();
    command.args(["test", "--package", "magpie-kernel", "--test", "litmus"]);
    run("litmus", command, parse_count)
}

/// Runs the models of liveness, if spin and a C compiler are here.
pub fn run_liveness() -> Result<Tally> {
    for (program, how) in
        [("spin", "install spin"), ("cc", "install gcc, for spin's searches are C programs")]
    {
        let flag = if program == "spin" { "-V" } else { "--version" };
        let version = Command::new(program).arg(flag).stdin(Stdio::null()).output();
        if !version.is_ok_and(|output| output.status.success()) {
            return Ok(skip("liveness", &format!("{program} is not here: {how}")));
        }
    }
    let mut command = cargo();
    command.args(["test", "--package", "magpie-kernel", "--test", "liveness"]);
    run("liveness", command, parse_count)
}

/// Checks of actors and process mailboxes that miri gets through in seconds each, with so many messages.
const MIRI_CHECKS: [&str; 9] = [
    "storage::",
    "bounds::",
    "placing::",
    "asking::",
    "crowd::",
    "urgent",
    "selecting::",
    "waiting::",
    "ends::",
];
const MIRI_WORK: u32 = 100;

/// Runs the structures' tests under miri, once for each seed, and some of the checks of actors and process mailboxes
/// once.
pub fn run_miri(seeds: u32) -> Result<Tally> {
    if let Some(reason) = nightly_lacks("miri") {
        return Ok(skip("miri", &reason));
    }
    let target = Workspace::load()?.target().join("miri");
    let test = |name: &str, flags: String| {
        let mut command = nightly_cargo();
        command.args(["miri", "test", "--package", "magpie-kernel", "--features", "checks", "--test", name]);
        command.arg("--target-dir").arg(&target).env("MIRIFLAGS", flags);
        command
    };
    let mut total = run("miri", test("queues", format!("-Zmiri-many-seeds=0..{seeds}")), parse_libtest)?;
    for check in MIRI_CHECKS {
        // Addresses are kept in words and found by masking; mailboxes and chunks are never given back.
        let flags = format!(
            "-Zmiri-disable-isolation -Zmiri-permissive-provenance -Zmiri-ignore-leaks \
             -Zmiri-env-set=MAGPIE_WORK={MIRI_WORK} -Zmiri-env-set=MAGPIE_CHECK={check}"
        );
        total.add(run(&format!("miri, {check}"), test("host_checks", flags), parse_libtest)?);
    }
    Ok(total)
}

/// Runs the structures' stress tests and the suites of the portable rooms under ThreadSanitizer.
pub fn run_thread_sanitizer() -> Result<Tally> {
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Ok(skip("ThreadSanitizer", "set up here for x86-64 Linux alone"));
    }
    // The standard library has to be instrumented too, hence its source.
    if let Some(reason) = nightly_lacks("rust-src") {
        return Ok(skip("ThreadSanitizer", &reason));
    }
    let target = Workspace::load()?.target().join("tsan");
    let instrumented = || {
        let mut command = nightly_cargo();
        command.args(["test", "-Zbuild-std", "--target", "x86_64-unknown-linux-gnu", "--target-dir"]);
        command.arg(&target).env("RUSTFLAGS", "-Zsanitizer=thread");
        command
    };
    let mut queues = instrumented();
    queues.args(["--package", "magpie-kernel", "--features", "checks", "--test", "queues"]);
    let mut total = run("ThreadSanitizer", queues, parse_libtest)?;
    // The real scheduler, executor and process mailboxes, on threads. A race that is reported makes the program
    // end badly.
    for suite in build_host_suites(instrumented(), &HOST_SUITES)? {
        total.add(run_host_suite(&suite, SANITIZED_CORES, &[], "ThreadSanitizer")?);
    }
    Ok(total)
}

/// More threads than that only wait for each other on a small host.
const SANITIZED_CORES: u32 = 4;

/// The nightly toolchain's cargo. The stable one that runs this tool has left its traces in the environment.
fn nightly_cargo() -> Command {
    let mut command = Command::new("rustup");
    command.args(["run", "nightly", "cargo"]).current_dir(root());
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "RUSTUP_TOOLCHAIN", "RUSTFLAGS"] {
        command.env_remove(variable);
    }
    command
}

/// Why the nightly toolchain cannot be used with a component; `None` if it can.
fn nightly_lacks(component: &str) -> Option<String> {
    let output = Command::new("rustup")
        .args(["component", "list", "--toolchain", "nightly", "--installed"])
        .stderr(Stdio::null())
        .output();
    let how = format!(
        "install it with: rustup toolchain install nightly --profile minimal --component {component}"
    );
    match output {
        Err(_) => Some("rustup is not here, so there is no nightly toolchain".to_owned()),
        Ok(output) if !output.status.success() => Some(format!("there is no nightly toolchain; {how}")),
        Ok(output) => {
            let installed = String::from_utf8_lossy(&output.stdout).into_owned();
            let there = installed.lines().any(|line| line.starts_with(component));
            (!there).then(|| format!("the nightly toolchain lacks {component}; {how}"))
        }
    }
}

/// Runs one proof; its output is shown only if something failed.
fn run(name: &str, mut command: Command, parse: fn(&str, &str) -> Tally) -> Result<Tally> {
    let began = Instant::now();
    let output = progress::output(&mut command).with_context(|| format!("{name} cannot be started"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    let mut tally = parse(&text, name);
    if tally.failures.is_empty() && (!output.status.success() || tally.passed == 0) {
        tally.fail(format!("{name}: did not build or did not run to its end ({})", output.status));
    }
    if tally.failed() > 0 {
        say!("{}", text.trim_end());
    }
    say!("verify {name}: {tally} ({:.1} s)", began.elapsed().as_secs_f64());
    Ok(tally)
}

fn skip(name: &str, reason: &str) -> Tally {
    say!("verify {name}: skipped: {reason}");
    Tally { skipped: 1, ..Tally::default() }
}

/// Reads what the models, the litmus tests and liveness print: a line for each, `!` before an unexpected one, and the
/// count at the end.
fn parse_count(text: &str, name: &str) -> Tally {
    let mut tally = Tally::default();
    let count = text.lines().rev().find_map(|line| {
        let (passed, failed) = line.strip_suffix(" failed")?.split_once(" passed, ")?;
        Some((passed.parse::<u64>().ok()?, failed.parse::<usize>().ok()?))
    });
    let Some((passed, failed)) = count else { return tally };
    tally.passed = passed;
    for line in text.lines().filter_map(|line| line.strip_prefix("! ")) {
        tally.fail(format!("{name}, {}", line.split_whitespace().collect::<Vec<_>>().join(" ")));
    }
    while tally.failed() < failed {
        tally.fail(format!("{name}: one whose name is in the output above"));
    }
    tally
}

#[cfg(test)]
mod tests {
    use super::parse_count;

    #[test]
    fn reads_the_count_and_names_what_was_unexpected() {
        let text = "loom: model, mutant\n  deque::a   passed 0.1 s\n! deque::a   push-relaxed   not noticed\n\
                    1 passed, 1 failed\n";
        let tally = parse_count(text, "loom");
        assert_eq!((tally.passed, tally.failed()), (1, 1));
        assert_eq!(tally.failures, ["loom, deque::a push-relaxed not noticed"]);
    }

    #[test]
    fn no_count_is_no_pass() {
        assert_eq!(parse_count("  deque::a passed\n", "loom").passed, 0);
    }
}
