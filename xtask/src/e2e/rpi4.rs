//! The Raspberry Pi 4's image on QEMU's `raspi4b`: the same application, the same results, the board's own ways
//! to end.

use super::tool::{Said, bare_qemu, tool};
use super::{Bench, Case, Outcome, text, wordcount};
use crate::build::Board;
use crate::machine::{Machine, Size};
use crate::setup::{OLDEST_FOR_RASPI4B, Qemu};
use anyhow::{Result, ensure};

pub const CASES: &[Case] = &[
    ("rpi4::counts_words_as_the_host_does", |bench| with_raspi4b(bench, counts_words)),
    ("rpi4::switches_itself_off", |bench| with_raspi4b(bench, |bench| ends(bench, "end=off"))),
    ("rpi4::resets_itself", |bench| with_raspi4b(bench, |bench| ends(bench, "end=reset"))),
    ("rpi4::the_led_blinks", |bench| with_raspi4b(bench, blinks)),
    ("rpi4::an_image_for_another_board_says_so", |bench| with_raspi4b(bench, the_other_boards_image)),
    ("rpi4::says_that_the_machine_is_what_it_is", refuses_other_machines),
];

fn with_raspi4b(bench: &Bench<'_>, case: fn(&Bench<'_>) -> Result<Outcome>) -> Result<Outcome> {
    match Qemu::find() {
        Some(qemu) if qemu.version >= OLDEST_FOR_RASPI4B => case(bench),
        Some(qemu) => {
            Ok(Outcome::Skipped(format!("QEMU {} is older than {OLDEST_FOR_RASPI4B}", qemu.version)))
        }
        None => Ok(Outcome::Skipped("there is no QEMU".into())),
    }
}

fn boot(bench: &Bench<'_>, words: &[&str]) -> Result<Said> {
    let mut command = tool()?;
    command.args(["qemu", "--board", "rpi4", "--no-install"]).args(words);
    command.args(["--timeout", &bench.limit.as_secs().to_string()]);
    Said::of(command)
}

fn counts_words(bench: &Bench<'_>) -> Result<Outcome> {
    wordcount::compare(bench, "rpi4", &text::large_text(4 << 20), &["--board", "rpi4"])
}

/// QEMU leaves by itself when the power manager is told to; `-no-reboot` makes a reset an end, too.
fn ends(bench: &Bench<'_>, how: &str) -> Result<Outcome> {
    let said = boot(bench, &["hello", "--append", how])?;
    said.expect_status(0)?.expect_line("hello from core 3")?;
    Ok(Outcome::Passed)
}

/// Five times, although who makes it blink crashes at the third; and where there is no LED that is said.
fn blinks(bench: &Bench<'_>) -> Result<Outcome> {
    let said = boot(bench, &["blink"])?;
    said.expect_status(0)?;
    let lines: Vec<_> = said.text().lines().map(str::to_owned).collect();
    let blinked: Vec<_> =
        lines.iter().filter(|line| line.ends_with(": on") || line.ends_with(": off")).collect();
    let expected = ["1: on", "1: off", "2: on", "2: off", "3: on", "4: on", "4: off", "5: on", "5: off"];
    ensure!(blinked == expected, "it blinked so: {blinked:?}");
    let mut without = tool()?;
    without.args(["qemu", "blink", "--no-install"]);
    let said = Said::of(without)?;
    said.expect_status(1)?.expect_line("error: there is no LED: cargo xtask qemu blink --board rpi4")?;
    Ok(Outcome::Passed)
}

fn refuses_other_machines(bench: &Bench<'_>) -> Result<Outcome> {
    for words in [["--smp", "2"], ["--memory", "1G"], ["--gic", "3"]] {
        boot(bench, &words)?.expect_status(2)?.expect_error("cannot be changed with --board rpi4")?;
    }
    Ok(Outcome::Passed)
}

/// On the wrong board an image says so, on that board's port.
fn the_other_boards_image(_: &Bench<'_>) -> Result<Outcome> {
    let virt = Machine::new(2, Size::from_mebibytes(512), None)?;
    for (board, machine, line) in [
        (
            Board::Virt,
            Machine::raspi4b(),
            "this image is for virt, and this is a Raspberry Pi 4: build it with --board rpi4",
        ),
        (
            Board::Rpi4,
            virt,
            "this image is for the Raspberry Pi 4, and this is virt: build it with --board virt",
        ),
    ] {
        let (command, _) = bare_qemu("hello", board, machine, 3)?;
        Said::of(command)?.expect_line(line)?;
    }
    Ok(Outcome::Passed)
}
