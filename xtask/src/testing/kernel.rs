//! Boots every in-kernel suite on QEMU, once for each number of cores, through the same path as
//! `cargo xtask qemu`. A test that takes the whole guest along has failed, and the tests after it are run in
//! another guest.

use super::Tally;
use super::instructions::check_instructions;
use super::report::Report;
use super::side_by_side::{self, Job};
use crate::build::{Board, Executable, Features, Image, build_suites, write_flat};
use crate::machine::{Ending, Guest, Machine, Size, run};
use crate::setup::Qemu;
use crate::stream::{Decoder, Output, show};
use anyhow::{Context, Result};
use std::io::{self, Write};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The suite of the hand-written exclusives.
pub const ASM_SUITE: &str = "asm";

/// The suite with the tests of wake-ups, and what they have in their names.
const WAKE_UP_SUITE: &str = "sched";
const WAKE_UP_TESTS: &str = "wake_up::";

/// The suite of the bounds in slices: only on machines whose time is counted in instructions.
const COUNTED_SUITE: &str = "bounds";

/// The suite that uses memory up, so one of its machines is small.
const MEMORY_SUITE: &str = "containment";
const SMALL_CORES: u32 = 3;
const SMALL_MEMORY: Size = Size::from_mebibytes(64);

/// What to run, and how.
pub struct KernelTests<'a> {
    /// The emulator.
    pub qemu: &'a Qemu,
    /// The suites' names.
    pub suites: &'a [&'a str],
    /// The machines: each suite is booted on each.
    pub machines: &'a [Machine],
    /// The boot arguments.
    pub arguments: &'a str,
    /// How long one boot may take.
    pub limit: Duration,
    /// What the suites are built with.
    pub features: Features,
    /// Whether to show what the guests print although nothing failed.
    pub verbose: bool,
}

/// Builds and runs the suites.
pub fn run_kernel_tests(tests: &KernelTests<'_>) -> Result<Tally> {
    let mut total = Tally::default();
    let built = match build_suites(tests.suites, tests.features) {
        Ok(built) => built,
        Err(error) => {
            total.fail(format!("kernel: {error:#}"));
            return Ok(total);
        }
    };
    let mut boots = Vec::new();
    for suite in tests.suites {
        let Some(executable) = built.iter().find(|executable| executable.name == **suite) else {
            total.fail(format!("kernel {suite}: cargo built no program for it"));
            continue;
        };
        if *suite == ASM_SUITE && tests.features == Features::default() {
            total.add(check_instructions(&executable.path)?);
        }
        let image = match write_flat(&executable.path) {
            Ok(image) => image,
            Err(error) => {
                total.fail(format!("kernel {suite}: {error:#}"));
                continue;
            }
        };
        for machine in tests.machines {
            let Some(machine) = suited(machine, suite) else { continue };
            boots.push((executable, image.clone(), machine));
        }
    }
    total.add(boot_all(tests, boots)?);
    if crate::machine::interrupted() {
        return Ok(total);
    }
    // The hand-written exclusives and their portable twins pass the same tests, and both with stores that
    // fail; no wake-up is lost when stores fail and interrupts come late.
    let again = |suite, features: Features| KernelTests { suites: suite, features, ..*tests };
    if tests.features == Features::default() {
        for (portable, forced_failure) in [(true, false), (false, true), (true, true)] {
            let features = Features { portable, forced_failure, ..tests.features };
            if tests.suites.contains(&ASM_SUITE) {
                total.add(run_kernel_tests(&again(&[ASM_SUITE], features))?);
            }
        }
        let features = Features { forced_failure: true, ..tests.features };
        let filter = tests.arguments.split_whitespace().find_map(|word| word.strip_prefix("filter="));
        // Another filter is about other tests.
        if tests.suites.contains(&WAKE_UP_SUITE) && filter.is_none_or(|filter| filter.contains("wake_up")) {
            let arguments = match filter {
                None => format!("{} filter={WAKE_UP_TESTS}", tests.arguments),
                Some(_) => tests.arguments.to_owned(),
            };
            total.add(run_kernel_tests(&KernelTests {
                arguments: &arguments,
                ..again(&[WAKE_UP_SUITE], features)
            })?);
        }
    }
    Ok(total)
}

/// Boots each of these, several at once as far as the host has processors for their cores. That takes nothing from what
/// they show: where time decides it is counted in instructions, and such a guest runs on one thread.
fn boot_all(tests: &KernelTests<'_>, boots: Vec<(&Executable, Image, Machine)>) -> Result<Tally> {
    let all = if tests.verbose { 1 } else { side_by_side::processors() };
    let total = Mutex::new(Ok(Tally::default()));
    let jobs = boots.into_iter().map(|boot| {
        let processors = if boot.2.icount { 1 } else { boot.2.cores as usize };
        Job { processors, work: boot }
    });
    side_by_side::run(jobs.collect(), all, |(executable, image, machine)| {
        let result = boot_to_the_end(tests, executable, &image, &machine);
        let mut total = total.lock().unwrap_or_else(PoisonError::into_inner);
        match (&mut *total, result) {
            (Ok(total), Ok(tally)) => total.add(tally),
            (Ok(_), error) => *total = error,
            (Err(_), _) => {}
        }
    });
    total.into_inner().unwrap_or_else(PoisonError::into_inner)
}

/// Boots one suite on one machine, again for the tests after each that takes the guest along.
fn boot_to_the_end(
    tests: &KernelTests<'_>,
    suite: &Executable,
    image: &Image,
    machine: &Machine,
) -> Result<Tally> {
    let (mut total, mut after) = (Tally::default(), None);
    while !crate::machine::interrupted() {
        let (tally, lost) = boot(tests, suite, image, machine, after.as_deref())?;
        total.add(tally);
        match lost {
            Some(name) => after = Some(name),
            None => break,
        }
    }
    Ok(total)
}

/// The machine as a suite needs it; `None` if there is none. A clock decides in one suite alone, where a nanosecond
/// is an instruction, and that is for `virt`.
fn suited(machine: &Machine, suite: &str) -> Option<Machine> {
    let icount = suite == COUNTED_SUITE;
    let is_small = suite == MEMORY_SUITE && machine.board == Board::Virt && machine.cores == SMALL_CORES;
    let memory = if is_small { machine.memory.min(SMALL_MEMORY) } else { machine.memory };
    (!icount || machine.board == Board::Virt).then(|| Machine { icount, memory, ..machine.clone() })
}

/// Boots one guest for the tests after `after`, or for all. Also says which test took the guest along.
fn boot(
    tests: &KernelTests<'_>,
    suite: &Executable,
    image: &Image,
    machine: &Machine,
    after: Option<&str>,
) -> Result<(Tally, Option<String>)> {
    let mut arguments = tests.arguments.to_owned();
    if machine.icount {
        arguments.push_str(" counted=1");
    }
    if let Some(after) = after {
        arguments = format!("{arguments} after={after}");
    }
    let guest = Guest {
        machine: machine.clone(),
        image: image.clone(),
        input: None,
        tree: None,
        commands: false,
        arguments,
        limit: tests.limit,
    };
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
    let lost = report.running().map(str::to_owned);
    let tally = match &lost {
        Some(_) => report.close_to_go_on(&run.describe(tests.limit)),
        None => report.close(run.ending == Ending::Status(0), &run.describe(tests.limit)),
    };
    let tally = label(tally, &name);
    let mut out = io::stdout().lock();
    let failed = tally.failed() > 0;
    let told = writeln!(out, "{name}: {tally} ({:.1} s)", run.time.as_secs_f64()).and_then(|()| {
        if failed && !tests.verbose {
            writeln!(out, "--- everything that {name} printed:")?;
            out.write_all(&heard)?;
            writeln!(out, "{}--- end of it", run.messages)?;
        }
        out.flush()
    });
    told.context("the results cannot be written")?;
    Ok((tally, lost))
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
    format!("kernel {suite}{board}, {cores}{memory}{gic}{el2}{portable}{forced}")
}

/// Says in each failure where it happened.
fn label(mut tally: Tally, name: &str) -> Tally {
    for failure in &mut tally.failures {
        *failure = format!("{name}, {failure}");
    }
    tally
}
