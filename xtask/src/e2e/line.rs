//! `cargo xtask line`, with QEMU's `raspi4b` for a board: its second serial port in a socket, and a pseudo-terminal between that and the tool.

use super::echo::{bytes, exchange};
use super::pty::{self, Damage};
use super::push::emulator;
use super::tool::tool;
use super::{Bench, Case, Outcome};
use crate::build::{Board, Features, build_application, write_flat};
use crate::machine::{Guest, Machine, guest_command, write_tree};
use crate::setup::Qemu;
use anyhow::{Context, Result, ensure};
use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("line::a_board_is_reached_over_a_terminal", |bench| over_a_terminal(bench, None)),
    ("line::a_line_that_loses_bytes_costs_none", |bench| over_a_terminal(bench, Some(BAD))),
];

/// In a packet of the greatest length one time out of seven. Changed ones are tried where two in a packet do not fall on the same bit, which no sum of TCP's would show.
const BAD: Damage = Damage { one_of: 10_000, changes: false, until: usize::MAX };
/// How long anything may take that is waited for.
const PATIENCE: Duration = Duration::from_secs(240);

/// A program that ends with the case.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The example `echo` on the board, its second serial port in the socket.
fn board(bench: &Bench<'_>, qemu: &Qemu, socket: &Path) -> Result<Running> {
    let tree = bench.folder.join("line.dtb");
    write_tree(&tree)?;
    let elf = build_application("echo", Features { board: Board::Rpi4, ..Features::default() })?;
    let guest = Guest {
        tree: Some(tree),
        arguments: "net=line".to_owned(),
        ..Guest::new(Machine::raspi4b(), write_flat(&elf)?, bench.limit)
    };
    let mut command = Command::new(&qemu.path);
    command.args(guest_command(&qemu.path, &guest).get_args());
    command.args(["-serial", &format!("unix:{},server=on,wait=off", socket.display())]);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let board = Running(command.spawn().context("QEMU cannot be started")?);
    let began = Instant::now();
    while !socket.exists() {
        ensure!(began.elapsed() < PATIENCE, "QEMU makes no socket");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(board)
}

/// Waits until the tool says that.
fn hear(lines: &Receiver<String>, part: &str) -> Result<()> {
    let began = Instant::now();
    let mut heard = Vec::new();
    while let Ok(line) = lines.recv_timeout(PATIENCE.saturating_sub(began.elapsed())) {
        if line.contains(part) {
            return Ok(());
        }
        heard.push(line);
    }
    anyhow::bail!("no '{part}' in\n{}", heard.join("\n"))
}

fn over_a_terminal(bench: &Bench<'_>, damage: Option<Damage>) -> Result<Outcome> {
    let qemu = match emulator() {
        Ok(qemu) => qemu,
        Err(skipped) => return Ok(skipped),
    };
    let socket = bench.folder.join("line.sock");
    let board = board(bench, &qemu, &socket)?;
    let terminal = pty::to(&socket, damage)?;
    let port = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).context("no port")?.port();
    let mut command = tool()?;
    command.args(["line", "--once", "--forward", &format!("{port}:7"), "--port"]).arg(terminal);
    let mut line = Running(command.stderr(Stdio::piped()).spawn().context("the tool cannot be started")?);
    let said = BufReader::new(line.0.stderr.take().context("there is no pipe")?);
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || said.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
    hear(&lines, "Ctrl-C ends it")?;
    // The board may still be starting: who connects waits until it answers.
    exchange(port, b"there?")?;
    exchange(port, &bytes(1, 100_000))?;
    drop(board);
    hear(&lines, "is gone")?;
    let status = line.0.wait().context("the tool is lost")?;
    ensure!(status.code() == Some(1), "it ends with {status}");
    Ok(Outcome::Passed)
}
