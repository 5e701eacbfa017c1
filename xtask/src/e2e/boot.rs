//! The kernel comes up on every shape of the machine: entered at EL1 and at EL2, with either interrupt
//! controller, with one core and with more than the first controller can have, with little memory.

use super::tool::{Said, bare_qemu, tool};
use super::{Bench, Case, Outcome};
use crate::build::{Board, Features, TARGET, build_application, cargo, write_flat};
use crate::machine::{Machine, Size};
use anyhow::{Context, Result, ensure};
use object::{Object, ObjectSection};
use std::fs;
use std::process::Command;

/// It says `hello from core N` on each core.
const EXAMPLE: &str = "hello";

pub const CASES: &[Case] = &[
    ("boot::one_core", |bench| boot(bench, 1, &[])),
    ("boot::entered_at_el2", |bench| boot(bench, 4, &["--el2"])),
    ("boot::gicv3", |bench| boot(bench, 4, &["--gic", "3"])),
    ("boot::gicv3_entered_at_el2", |bench| boot(bench, 2, &["--gic", "3", "--el2"])),
    ("boot::little_memory", little_memory),
    ("boot::memory_of_several_nodes", several_nodes),
    ("boot::another_processor", |bench| boot(bench, 2, &["--cpu", "max"])),
    ("boot::odd_arguments", odd_arguments),
    ("boot::the_smallest_actor", smallest_actor),
    ("boot::unoptimised", unoptimised),
    ("boot::the_smallest_image", smallest_image),
    ("boot::sixty_four_cores", |bench| boot(bench, 64, &[])),
    ("boot::a_host_that_takes_no_status", without_semihosting),
];

fn boot(bench: &Bench<'_>, cores: u32, options: &[&str]) -> Result<Outcome> {
    said_by(bench, cores, options)?;
    Ok(Outcome::Passed)
}

fn said_by(bench: &Bench<'_>, cores: u32, options: &[&str]) -> Result<Said> {
    let mut command = tool()?;
    command.args(["qemu", EXAMPLE, "--no-install", "--smp", &cores.to_string()]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]).args(options);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    for core in 0..cores {
        said.expect_line(&format!("hello from core {core}"))?;
    }
    Ok(said)
}

/// The device tree lies in the middle of it, and parts it: what is not used is said.
fn little_memory(bench: &Bench<'_>) -> Result<Outcome> {
    let said = said_by(bench, 4, &["--memory", "64M"])?;
    ensure!(said.text().contains(" MiB of memory stay unused: "), "{}", said.text());
    ensure_heap(&said, 24)
}

/// The heap has so many MiB.
fn ensure_heap(said: &Said, least: u64) -> Result<Outcome> {
    let text = said.text();
    let kib = text.split(" KiB of heap").next().and_then(|before| before.rsplit(' ').next());
    let kib: u64 =
        kib.and_then(|kib| kib.parse().ok()).with_context(|| format!("no heap is named:\n{text}"))?;
    ensure!(kib / 1024 >= least, "the heap has {} MiB, not {least}", kib / 1024);
    Ok(Outcome::Passed)
}

/// Nodes that follow each other, with the device tree in the middle: nearly all is the heap.
fn several_nodes(bench: &Bench<'_>) -> Result<Outcome> {
    let machine = Machine::new(4, Size::from_mebibytes(640), None)?;
    let (mut command, elf) = bare_qemu(EXAMPLE, Board::Virt, machine, 300)?;
    for (index, cores) in [",cpus=0-1", ",cpus=2-3", "", "", ""].into_iter().enumerate() {
        command.arg("-object").arg(format!("memory-backend-ram,id=node{index},size=128M"));
        command.arg("-numa").arg(format!("node,memdev=node{index}{cores}"));
    }
    let recording = bench.folder.join("nodes.bin");
    fs::write(&recording, Said::of(command)?.out).context("cannot write the recording")?;
    let mut decode = tool()?;
    decode.arg("decode").arg("--elf").arg(elf).arg(&recording);
    let said = Said::of(decode)?;
    said.expect_status(0)?.expect_line("hello from core 3")?;
    ensure!(!said.text().contains("stay unused"), "{}", said.text());
    ensure_heap(&said, 600)
}

/// As by `cargo run` in a project without profiles: what is large is not moved through the stack.
fn unoptimised(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--config", "profile.dev.opt-level=0", "--target", TARGET]);
    command.args(["--package", EXAMPLE]);
    command.env("MAGPIE_NO_INSTALL", "1");
    Said::of(command)?.expect_status(0)?.expect_line("hello from core 3")?;
    Ok(Outcome::Passed)
}

/// A static with one byte that is not zero at the start is in the image with all its zeros, and a table for each of 64 cores
/// is long.
fn smallest_image(_: &Bench<'_>) -> Result<Outcome> {
    const MOST_BYTES: u64 = 256 << 10;
    const MOST_ZEROS: usize = 4 << 10;
    let image = write_flat(&build_application("idle", Features::default())?)?;
    let bytes = fs::metadata(&image.flat).context("the image is missing")?.len();
    ensure!(bytes <= MOST_BYTES, "the image has {bytes} bytes, {MOST_BYTES} are the most");
    let elf = fs::read(&image.elf).context("the ELF is missing")?;
    let file = object::File::parse(&*elf).context("cannot read the ELF")?;
    let data = file.section_by_name(".data").context("there is no .data")?;
    let longest = data.data()?.split(|&byte| byte != 0).map(<[u8]>::len).max().unwrap_or(0);
    ensure!(longest <= MOST_ZEROS, ".data has {longest} zeros in a row, {MOST_ZEROS} are the most");
    Ok(Outcome::Passed)
}

/// The machine is switched off all the same, and nothing is said to have failed.
fn without_semihosting(_: &Bench<'_>) -> Result<Outcome> {
    let machine = Machine::new(2, Size::from_mebibytes(512), None)?;
    let (usual, _) = bare_qemu(EXAMPLE, Board::Virt, machine, 300)?;
    let mut unheard = Command::new(usual.get_program());
    unheard.args(usual.get_args().filter(|argument| *argument != "-semihosting"));
    let said = Said::of(unheard)?;
    said.expect_status(0)?.expect_line("hello from core 1")?;
    said.expect_line("nobody takes the exit status: the machine is switched off")?;
    ensure!(!said.text().contains("panic"), "it panics:\n{}", said.text());
    Ok(Outcome::Passed)
}

/// The example `counter`: told a number, asked with another.
fn smallest_actor(bench: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["qemu", "counter", "--no-install", "--smp", "3"]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    Said::of(command)?.expect_status(0)?.expect_line("the sum is 42")?;
    Ok(Outcome::Passed)
}

fn odd_arguments(bench: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args([
        "qemu",
        EXAMPLE,
        "--no-install",
        "--append",
        "sched.slice_us=1 sched.nonsense=5 sched.thieves=x stack_kib=9000 stacks=many =",
    ]);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    for line in [
        "boot argument sched.slice_us=1 ignored: it goes from 50 to 1000000",
        "boot argument sched.nonsense=5 ignored: no setting has this name",
        "boot argument sched.thieves=x ignored: its value is a whole number",
        "boot argument stack_kib=9000 ignored: it goes from 64 to 1024",
        "boot argument stacks=many ignored: its value is a whole number",
        "hello from core 3",
    ] {
        said.expect_line(line)?;
    }
    Ok(Outcome::Passed)
}
