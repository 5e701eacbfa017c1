//! Boots every in-kernel suite on QEMU, once for each number of cores, through the same path as
//! `cargo xtask qemu`. A test that takes the whole guest along has failed. The tests after one that fails are run in
//! another guest, because what it leaves behind could fail them, too.

use super::Tally;
use super::report::Report;
use super::side_by_side::processors;
use super::task::Task;
use crate::build::{Board, Executable, Features, Image, build_suites, write_flat};
use crate::machine::{Ending, Guest, Machine, Size, run};
use crate::progress::{self, say};
use crate::setup::Qemu;
use crate::stream::{Decoder, Output, show};
use anyhow::Result;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Suites that are built at once, and what they are booted on.
#[derive(Clone)]
pub struct KernelTests<'a> {
    /// The emulator.
    pub qemu: &'a Qemu,
    /// The suites' package.
    pub package: &'a str,
    /// What to boot: a suite, and a machine.
    pub boots: Vec<(&'a str, Machine)>,
    /// The boot arguments.
    pub arguments: String,
    /// How long one boot may take, with those that run the rest of its tests.
    pub limit: Duration,
    /// What the suites are built with.
    pub features: Features,
    /// Whether to show what the guests print although nothing failed.
    pub verbose: bool,
    /// What is to be known of a suite that is built, before it is booted.
    pub inspect: fn(&Executable, Features) -> Result<Tally>,
}

impl KernelTests<'_> {
    /// What its boots are called.
    pub fn names(&self) -> impl Iterator<Item = String> {
        self.boots.iter().map(|(suite, machine)| title(suite, machine, self.features))
    }

    /// What the building of it is called while it runs.
    pub fn build_job(&self) -> String {
        let Features { board, portable, forced_failure, .. } = self.features;
        let words = [
            (board == Board::Rpi4).then_some("for raspi4b"),
            portable.then_some("portable"),
            forced_failure.then_some("with forced failures"),
        ];
        let words: Vec<_> = words.into_iter().flatten().collect();
        format!("building suites {}", words.join(", ")).trim_end().to_owned()
    }
}

/// Builds the suites; then each boot is a task. What cannot be built is counted as failed.
pub fn kernel_tasks<'a>(tests: KernelTests<'a>) -> Result<(Tally, Vec<Task<'a>>)> {
    let (mut total, mut tasks) = (Tally::default(), Vec::new());
    let mut suites: Vec<&str> = tests.boots.iter().map(|(suite, _)| *suite).collect();
    suites.sort_unstable();
    suites.dedup();
    if suites.is_empty() {
        return Ok((total, tasks));
    }
    let job = progress::job(tests.build_job());
    let built = build_suites(tests.package, &suites, tests.features);
    drop(job);
    let mut built = match built {
        Ok(built) => built,
        Err(error) => {
            total.fail(format!("kernel: {error:#}"));
            return Ok((total, tasks));
        }
    };
    let tests = Arc::new(tests);
    for suite in suites {
        let Some(place) = built.iter().position(|executable| executable.name == suite) else {
            total.fail(format!("kernel {suite}: cargo built no program for it"));
            continue;
        };
        let executable = Arc::new(built.swap_remove(place));
        total.add((tests.inspect)(&executable, tests.features)?);
        let image = match write_flat(&executable.path) {
            Ok(image) => image,
            Err(error) => {
                total.fail(format!("kernel {suite}: {error:#}"));
                continue;
            }
        };
        for (_, machine) in tests.boots.iter().filter(|(name, _)| *name == suite) {
            // Where time decides it is counted in instructions, and such a guest runs on one thread. So running guests
            // side by side takes nothing from what they show.
            let busy = if machine.icount { 1 } else { (machine.cores as usize).min(processors()) };
            let (tests, executable) = (tests.clone(), executable.clone());
            let (image, machine) = (image.clone(), machine.clone());
            tasks.push(Task::new(title(suite, &machine, tests.features), busy, move || {
                boot_to_the_end(&tests, &executable, &image, &machine)
            }));
        }
    }
    Ok((total, tasks))
}

/// Boots one suite on one machine, again for the tests after each that takes the guest along or fails.
fn boot_to_the_end(
    tests: &KernelTests<'_>,
    suite: &Executable,
    image: &Image,
    machine: &Machine,
) -> Result<Tally> {
    let begin = Instant::now();
    let (mut total, mut after) = (Tally::default(), None);
    while !crate::machine::interrupted() {
        // All of them together have the time of one, or a kernel that is broken would take it for each test.
        let left = tests.limit.saturating_sub(begin.elapsed());
        if let Some(after) = after.as_ref().filter(|_| left.is_zero()) {
            let name = title(&suite.name, machine, tests.features);
            total.fail(format!("{name}: the tests after {after} were not run, because the time is up"));
            break;
        }
        let (tally, ended_with) = boot(tests, suite, image, machine, after.as_deref(), left)?;
        total.add(tally);
        match ended_with {
            Some(name) => after = Some(name),
            None => break,
        }
    }
    Ok(total)
}

/// Boots one guest for the tests after `after`, or for all. Also says with which test it has ended before all were run.
fn boot(
    tests: &KernelTests<'_>,
    suite: &Executable,
    image: &Image,
    machine: &Machine,
    after: Option<&str>,
    limit: Duration,
) -> Result<(Tally, Option<String>)> {
    let mut arguments = format!("{} until=failure", tests.arguments);
    if machine.icount {
        arguments.push_str(" counted=1");
    }
    if let Some(after) = after {
        arguments = format!("{arguments} after={after}");
    }
    let guest = Guest { arguments, ..Guest::new(machine.clone(), image.clone(), limit) };
    let mut decoder = Decoder::for_elf(&image.elf)?;
    let mut report = Report::default();
    let mut heard: Vec<u8> = Vec::new();
    let mut sink = |output: Output| {
        if let Output::Notice(notice) = &output {
            report.take(notice);
        }
        if tests.verbose {
            // A closed output is noticed by the line after the run.
            let _ = show(&output, &mut io::stdout());
        }
        // Warnings too: where the output is kept, they belong between its lines.
        let _ = match &output {
            Output::Warning(warning) => writeln!(heard, "warning: {warning}"),
            output => show(output, &mut heard),
        };
    };
    let run = run(&tests.qemu.path, &guest, &mut |bytes| decoder.push(bytes, &mut sink))?;
    decoder.finish(&mut sink);

    let name = title(&suite.name, machine, tests.features);
    let ended_with = report.ended_with().map(str::to_owned);
    let tally = match &ended_with {
        Some(_) => report.close_to_go_on(&run.describe(limit)),
        None => report.close(run.ending == Ending::Status(0), &run.describe(limit)),
    };
    let tally = label(tally, &name);
    let mut told = format!("{name}: {tally} ({:.1} s)", run.time.as_secs_f64());
    if tally.failed() > 0 && !tests.verbose {
        let heard = String::from_utf8_lossy(&heard);
        told.push_str(&format!(
            "\n--- everything that {name} printed:\n{heard}{}--- end of it",
            run.messages
        ));
    }
    // At once: others print too.
    say!("{told}");
    Ok((tally, ended_with))
}

fn title(suite: &str, machine: &Machine, features: Features) -> String {
    let board = if machine.board == Board::Virt { "" } else { ", raspi4b" };
    let cores = if machine.cores == 1 { "1 core".to_owned() } else { format!("{} cores", machine.cores) };
    let gic = if machine.cores <= 8 && machine.gic == crate::machine::Gic::V3 { ", GICv3" } else { "" };
    let el2 = if machine.el2 && machine.board == Board::Virt { ", EL2" } else { "" };
    let memory = match machine.memory {
        small if machine.board == Board::Virt && small < Size::from_mebibytes(1024) => format!(", {small}"),
        _ => String::new(),
    };
    let portable = if features.portable { ", portable" } else { "" };
    let forced = if features.forced_failure { ", forced failures" } else { "" };
    // A project's only suite is called so.
    let suite = if suite == "kernel" { String::new() } else { format!(" {suite}") };
    format!("kernel{suite}{board}, {cores}{memory}{gic}{el2}{portable}{forced}")
}

/// Says in each failure where it happened.
fn label(mut tally: Tally, name: &str) -> Tally {
    for failure in &mut tally.failures {
        *failure = format!("{name}, {failure}");
    }
    tally
}
