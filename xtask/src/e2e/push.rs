//! The chain loader and the monitor, with QEMU's `raspi4b` for a board and its serial line in a socket.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::build::{build_loader, write_flat};
use crate::machine::{Guest, Machine, guest_command, write_tree};
use crate::setup::{OLDEST_FOR_RASPI4B, Qemu};
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

pub const CASES: &[Case] =
    &[("push::a_kernel_goes_over_the_line_and_runs", push), ("push::missing_ports_are_named", missing_port)];

/// Ends QEMU with the case.
struct Board(Child);

impl Drop for Board {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A board with the loader on its card.
fn board(bench: &Bench<'_>, qemu: &Qemu, socket: &Path) -> Result<Board> {
    let tree = bench.folder.join("push.dtb");
    write_tree(&tree)?;
    let guest = Guest {
        machine: Machine::raspi4b(),
        image: write_flat(&build_loader()?)?,
        input: None,
        tree: Some(tree),
        arguments: String::new(),
        limit: bench.limit,
        commands: false,
    };
    let _ = std::fs::remove_file(socket);
    let usual = guest_command(&qemu.path, &guest);
    // The usual command, with the serial line in the socket in place of standard output.
    let line = OsString::from(format!("unix:{},server=on,wait=off", socket.display()));
    let words = usual.get_args().map(|word| if word == "stdio" { line.as_os_str() } else { word });
    let mut command = Command::new(&qemu.path);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let board = Board(command.spawn().context("QEMU cannot be started")?);
    let began = Instant::now();
    while !socket.exists() {
        ensure!(began.elapsed() < Duration::from_secs(20), "QEMU makes no socket");
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(board)
}

fn push(bench: &Bench<'_>) -> Result<Outcome> {
    let Some(qemu) = Qemu::find().filter(|qemu| qemu.version >= OLDEST_FOR_RASPI4B) else {
        return Ok(Outcome::Skipped(format!("QEMU is older than {OLDEST_FOR_RASPI4B}")));
    };
    let socket = bench.folder.join("push.sock");
    let _board = board(bench, &qemu, &socket)?;
    let mut command = tool()?;
    command
        .args(["push", "hello", "--once", "--no-install", "--port"])
        .arg(format!("unix:{}", socket.display()));
    let said = Said::of(command)?;
    said.expect_status(0)?.expect_error("100 %")?;
    for core in 0..4 {
        said.expect_line(&format!("hello from core {core}"))?;
    }
    Ok(Outcome::Passed)
}

fn missing_port(bench: &Bench<'_>) -> Result<Outcome> {
    for verb in [&["push", "hello", "--no-install"][..], &["monitor", "--elf"]] {
        let mut command = tool()?;
        command.args(verb);
        if verb[0] == "monitor" {
            command.arg(bench.workspace.target().join("rpi4/aarch64-unknown-none/release/hello"));
        }
        command.args(["--port", "/dev/magpie-nonesuch"]);
        Said::of(command)?.expect_status(2)?.expect_error("plug the adapter in")?;
    }
    Ok(Outcome::Passed)
}
