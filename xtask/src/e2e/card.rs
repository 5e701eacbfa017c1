//! Images of SD cards, read back with mtools, which has nothing in common with what wrote them; and what is refused.
//!
//! The firmware's files are stand-ins here: they are put on the card and read back, not run.

use super::tool::{Said, tool_as_it_is};
use super::{Bench, Case, Outcome};
use crate::build::{Board, Features, Image, build_application, write_flat};
use crate::machine::{Ending, Guest, Machine, run};
use crate::setup::{OLDEST_FOR_RASPI4B, Qemu};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

pub const CASES: &[Case] = &[
    ("card::mtools_finds_the_files_and_the_kernel_boots", image),
    ("card::an_application_and_the_host_exchange_files", exchanged),
    ("card::copied_into_a_folder", copied),
    ("card::missing_firmware_is_named", missing_firmware),
    ("card::what_is_no_card_is_not_written", no_card),
];

const EXAMPLE: &str = "hello";
const FIRMWARE: [&str; 3] = ["start4.elf", "fixup4.dat", "bcm2711-rpi-4-b.dtb"];
/// Where the partition begins, for mtools.
const PARTITION: &str = "@@1048576";

/// The card that would boot the board, with a file of the host's: the example reads it and leaves one of its own, at each start; on `raspi4b` in the card slot, and on `virt` as a disk.
/// The rest of the card stays as it was.
fn exchanged(bench: &Bench<'_>) -> Result<Outcome> {
    if Command::new("mcopy").arg("--version").output().is_err() {
        return Ok(Outcome::Skipped("mtools are not installed".into()));
    }
    let (card, hello) = (bench.folder.join("exchanged.img"), bench.folder.join("hello.txt"));
    make(bench, "image", &["--output", &card.to_string_lossy()])?.expect_status(0)?;
    fs::write(&hello, "good morning\n").context("cannot write a file")?;
    let mut copies = Command::new("mcopy");
    copies.arg("-i").arg(format!("{}{PARTITION}", card.display())).arg(&hello).arg("::HELLO.TXT");
    ensure!(copies.status().context("mcopy does not run")?.success(), "mcopy failed");
    let has_raspi4b = Qemu::find().is_some_and(|qemu| qemu.version >= OLDEST_FOR_RASPI4B);
    let board = ["--board", "rpi4", "--card"];
    let slots: &[&[&str]] =
        if has_raspi4b { &[&board, &["--smp", "1", "--disk"], &board] } else { &[&["--disk"]] };
    for (before, slot) in slots.iter().enumerate() {
        let mut boots = tool_as_it_is()?;
        boots.args(["qemu", "notes", "--no-install"]).args(*slot).arg(&card);
        boots.args(["--timeout", &bench.limit.as_secs().to_string()]);
        let said = Said::of(boots)?;
        said.expect_status(0)?
            .expect_line("HELLO.TXT: 13 bytes")?
            .expect_line("hello says: good morning")?
            .expect_line(&format!("started {before} times before"))?;
        let expected: String = (1..=before + 1).map(|start| format!("start {start}\n")).collect();
        ensure!(
            on_card(bench, &card, "NOTES/STARTS.TXT")? == expected.as_bytes(),
            "the host reads something else"
        );
    }
    for name in FIRMWARE {
        let wanted = fs::read(bench.folder.join("firmware").join(name)).context("the stand-in is gone")?;
        ensure!(on_card(bench, &card, name)? == wanted, "{name} is not what it was");
    }
    let mut without = tool_as_it_is()?;
    without.args(["qemu", "notes", "--no-install"]);
    Said::of(without)?
        .expect_status(1)?
        .expect_line("error: there is no card: cargo xtask qemu notes --board rpi4 --card FILE")?;
    Ok(Outcome::Passed)
}

/// A folder with stand-ins for the firmware's files.
pub fn firmware(bench: &Bench<'_>) -> Result<PathBuf> {
    let folder = bench.folder.join("firmware");
    fs::create_dir_all(&folder).context("cannot make a folder for the firmware")?;
    for (seed, name) in FIRMWARE.into_iter().enumerate() {
        let content: Vec<u8> = (0..70_000 + seed * 1000).map(|i| (i * 13 + seed) as u8).collect();
        fs::write(folder.join(name), content).context("cannot write the firmware's stand-in")?;
    }
    Ok(folder)
}

fn make(bench: &Bench<'_>, verb: &str, more: &[&str]) -> Result<Said> {
    let folder = firmware(bench)?;
    let mut command = tool_as_it_is()?;
    command.args([verb, EXAMPLE, "--board", "rpi4", "--no-install", "--firmware"]).arg(&folder).args(more);
    Said::of(command)
}

fn image(bench: &Bench<'_>) -> Result<Outcome> {
    if Command::new("mcopy").arg("--version").output().is_err() {
        return Ok(Outcome::Skipped("mtools are not installed".into()));
    }
    let (card, input) = (bench.folder.join("card.img"), bench.folder.join("card-input.txt"));
    fs::write(&input, "some words to count\n").context("cannot write the input")?;
    let words = ["--input", &input.to_string_lossy(), "--output", &card.to_string_lossy()];
    make(bench, "image", &words)?.expect_status(0)?;

    for name in FIRMWARE {
        let wanted = fs::read(bench.folder.join("firmware").join(name)).context("the stand-in is gone")?;
        ensure!(on_card(bench, &card, name)? == wanted, "{name} is not what was given");
    }
    ensure!(on_card(bench, &card, "input")? == fs::read(&input)?, "the input is not what was given");
    let configuration = String::from_utf8(on_card(bench, &card, "config.txt")?)?;
    for line in
        ["arm_64bit=1", "kernel=kernel8.img", "kernel_address=0x200000", "initramfs input followkernel"]
    {
        ensure!(configuration.lines().any(|found| found == line), "{line} is missing in:\n{configuration}");
    }
    let kernel = on_card(bench, &card, "kernel8.img")?;
    fs::remove_file(&card).context("cannot remove the image")?;
    boot(bench, &kernel)
}

/// A file of the card, by mtools.
fn on_card(bench: &Bench<'_>, card: &Path, name: &str) -> Result<Vec<u8>> {
    let out = bench.folder.join("from-card");
    let image = format!("{}{PARTITION}", card.display());
    let mut command = Command::new("mcopy");
    command.args(["-n", "-o", "-i", &image, &format!("::{name}")]).arg(&out);
    let output = command.output().context("mcopy cannot be started")?;
    ensure!(output.status.success(), "mcopy {name}: {}", String::from_utf8_lossy(&output.stderr));
    fs::read(&out).context("mcopy has left no file")
}

/// The very bytes that were on the card.
fn boot(bench: &Bench<'_>, kernel: &[u8]) -> Result<Outcome> {
    let Some(qemu) = Qemu::find().filter(|qemu| qemu.version >= OLDEST_FOR_RASPI4B) else {
        return Ok(Outcome::Skipped(
            "the card was read back, but this QEMU has no raspi4b to boot it".into(),
        ));
    };
    let elf = build_application(EXAMPLE, Features { board: Board::Rpi4, ..Features::default() })?;
    ensure!(
        fs::read(&write_flat(&elf)?.flat)? == kernel,
        "the kernel on the card is not the one that was built"
    );
    let flat = bench.folder.join("kernel8.img");
    fs::write(&flat, kernel).context("cannot write the kernel")?;
    let guest = Guest::new(Machine::raspi4b(), Image { elf, flat }, bench.limit);
    let mut heard = Vec::new();
    let ended = run(&qemu.path, &guest, &mut |bytes| heard.extend_from_slice(bytes))?;
    let heard = String::from_utf8_lossy(&heard);
    ensure!(ended.ending == Ending::Status(0), "{:?}\n{heard}", ended.ending);
    ensure!(heard.contains("hello from core 3"), "{heard}");
    Ok(Outcome::Passed)
}

fn copied(bench: &Bench<'_>) -> Result<Outcome> {
    let folder = bench.folder.join("mounted");
    fs::create_dir_all(&folder).context("cannot make a folder")?;
    make(bench, "flash", &["--dir", &folder.to_string_lossy()])?.expect_status(0)?;
    for name in FIRMWARE.into_iter().chain(["kernel8.img", "config.txt"]) {
        ensure!(folder.join(name).is_file(), "{name} was not copied");
    }
    fs::remove_dir_all(&folder).context("cannot remove the folder")?;
    Ok(Outcome::Passed)
}

fn missing_firmware(bench: &Bench<'_>) -> Result<Outcome> {
    let folder = bench.folder.join("no-firmware");
    fs::create_dir_all(&folder).context("cannot make a folder")?;
    fs::write(folder.join(FIRMWARE[0]), "x").context("cannot write the firmware's stand-in")?;
    let mut command = tool_as_it_is()?;
    command.args(["image", EXAMPLE, "--no-install", "--firmware"]).arg(&folder);
    let said = Said::of(command)?;
    // One half of the loader is of no use without the other, which may be of another version elsewhere.
    said.expect_status(2)?.expect_error("start4.elf, fixup4.dat, bcm2711-rpi-4-b.dtb not found")?;
    said.expect_error("github.com/raspberrypi/firmware")?;
    Ok(Outcome::Passed)
}

fn no_card(bench: &Bench<'_>) -> Result<Outcome> {
    let file = bench.folder.join("precious");
    fs::write(&file, "precious").context("cannot write a file")?;
    let shown = file.to_string_lossy();
    make(bench, "flash", &["--device", &shown, "--yes"])?
        .expect_status(2)?
        .expect_error("no block device")?;
    ensure!(fs::read(&file)? == b"precious", "the file was written to");
    make(bench, "flash", &["--device", "/dev/nonesuch"])?.expect_status(2)?.expect_error("there is no")?;
    make(bench, "flash", &[])?.expect_status(2)?;
    Ok(Outcome::Passed)
}
