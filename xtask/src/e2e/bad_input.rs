//! Commands that cannot be carried out: status 2, one line that says what to do, and no waiting.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};

pub const CASES: &[Case] = &[
    ("bad_input::unknown_example", |_| refused(&["qemu", "nonesuch"], "known applications:")),
    ("bad_input::no_cores", |_| refused(&["qemu", "--smp", "0"], "--smp 1")),
    ("bad_input::too_many_cores", |_| refused(&["qemu", "--smp", "65"], "--smp 64")),
    ("bad_input::too_many_cores_for_gicv2", |_| refused(&["qemu", "--smp", "9", "--gic", "2"], "--gic 3")),
    ("bad_input::missing_input", |_| refused(&["qemu", "--input", "/no/such/file"], "give an existing file")),
    ("bad_input::input_larger_than_memory", input_larger_than_memory),
    ("bad_input::unknown_suite", |_| refused(&["test", "--kernel", "nonesuch"], "suite")),
    ("bad_input::no_cores_for_tests", |_| refused(&["test", "--smp", "4,0"], "--smp 1")),
    ("bad_input::missing_elf", |_| refused(&["decode", "--elf", "/no/such/elf"], "/no/such/elf")),
    ("bad_input::unknown_verb", unknown_verb),
    ("bad_input::el2_on_the_raspberry_pi", |_| {
        refused(&["qemu", "--board", "rpi4", "--el2"], "--el2 cannot be")
    }),
    ("bad_input::an_image_in_place_of_a_device", |_| {
        refused(&["image", "--no-install", "--output", "/dev/full"], "is no file")
    }),
    ("bad_input::a_card_that_is_not_mounted", |_| {
        refused(&["flash", "--no-install", "--dir", "/no/such/folder"], "is no folder")
    }),
    ("bad_input::an_image_in_no_folder", |_| {
        refused(&["image", "--no-install", "--output", "/no/such/folder/card.img"], "there is no folder")
    }),
    ("bad_input::a_live_view_without_a_terminal", |_| refused(&["top", "hello"], "cargo xtask stats")),
    ("bad_input::a_trace_in_no_folder", |_| {
        refused(&["trace", "hello", "-o", "/no/such/folder/x"], "there is no folder")
    }),
    ("bad_input::a_port_for_gdb_that_is_taken", a_port_for_gdb_that_is_taken),
];

fn refused(arguments: &[&str], message: &str) -> Result<Outcome> {
    let mut command = tool()?;
    command.args(arguments);
    let said = Said::of(command)?;
    said.expect_status(2)?.expect_error(message)?;
    if said.err.trim_end().lines().count() != 1 {
        bail!("more than one line:\n{}", said.err);
    }
    Ok(Outcome::Passed)
}

fn input_larger_than_memory(bench: &Bench<'_>) -> Result<Outcome> {
    // A file with a hole: 600 MiB that take no room on the disk.
    let path = bench.folder.join("large.txt");
    let file = File::create(&path).context("cannot make the large file")?;
    file.set_len(600 << 20).context("cannot make the large file")?;
    let shown = path.to_string_lossy();
    let result = refused(&["qemu", "--input", &shown], "--memory 1G");
    std::fs::remove_file(&path).context("cannot remove the large file")?;
    result
}

fn a_port_for_gdb_that_is_taken(_: &Bench<'_>) -> Result<Outcome> {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("there is no port")?;
    let port = taken.local_addr().context("it has no port")?.port();
    refused(&["qemu", "hello", &format!("--gdb={port}")], "cannot be taken")
}

fn unknown_verb(_: &Bench<'_>) -> Result<Outcome> {
    let mut command = tool()?;
    command.arg("nonesuch");
    Said::of(command)?.expect_status(2)?;
    Ok(Outcome::Passed)
}
