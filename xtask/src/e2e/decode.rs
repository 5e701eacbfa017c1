//! `decode` on a recorded stream that was damaged on the way.

use super::fixture::fixture;
use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, ensure};
use std::fs;

pub const CASES: &[Case] = &[
    ("decode::damaged_recording_is_read_on", damaged_recording),
    ("decode::a_frame_that_is_too_long_is_named", too_long),
];

/// A test in the kernel logs more than a frame can have, then less.
fn too_long(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(["test", "--no-install", "--kernel", "containment", "--smp", "1", "--verbose"]);
    command.args(["--filter", "what_is_logged_may_be_too_long"]);
    let said = Said::of(command)?;
    said.expect_status(0)?;
    for part in [
        "a log frame of 7",
        " bytes was dropped, for 512 are the most",
        "tests/suites/containment/stacks.rs:",
        "and short again",
    ] {
        ensure!(said.text().contains(part), "'{part}' is missing\n{}", said.text());
    }
    Ok(Outcome::Passed)
}

fn damaged_recording(bench: &Bench<'_>) -> Result<Outcome> {
    let recording = bench.folder.join("recording.bin");
    let stream = [
        b"\x90\x03\xff\0".as_slice(), // the end of a frame
        b"one\n",
        b"\0\x01\x81\x82\0tw\0\x01\x99\0o\r\n", // a frame inside a line
        b"\x01\x81\xf0\0",                      // a frame without its start
        b"three\n\0\x01\x81",                   // a frame without its end
    ];
    fs::write(&recording, stream.concat()).context("cannot write the recording")?;
    let mut command = tool()?;
    command.arg("decode").arg("--elf").arg(fixture(bench, "success")?).arg(&recording);
    let said = Said::of(command)?;
    said.expect_status(0)?.expect_line("one")?.expect_line("two")?.expect_line("three")?;
    said.expect_error("6 bytes belonged to none")?;
    Ok(Outcome::Passed)
}
