//! The monitor at the end of a bad line: a recorded stream, cut and corrupted at random places, then the same stream
//! whole. Whatever came before, the whole one is shown, from the first boundary on.

use super::tool::{Said, tool};
use super::{Bench, Case, Outcome};
use crate::build::{Features, build_application, write_flat};
use crate::machine::{Ending, Guest, Machine, Size, run};
use crate::random::Random;
use crate::setup::Qemu;
use anyhow::{Context, Result, ensure};
use std::io::Write;
use std::os::unix::net::UnixListener;
use std::thread;

pub const CASES: &[Case] = &[("monitor::damage_is_survived", damage)];

const EXAMPLE: &str = "hello";
const SEEDS: u64 = 12;

fn damage(bench: &Bench<'_>) -> Result<Outcome> {
    let qemu = Qemu::find().context("QEMU is missing")?;
    let image = write_flat(&build_application(EXAMPLE, Features::default())?)?;
    let guest = Guest::new(Machine::new(4, Size::from_mebibytes(512), None)?, image.clone(), bench.limit);
    let mut recorded = Vec::new();
    let ended = run(&qemu.path, &guest, &mut |bytes| recorded.extend_from_slice(bytes))?;
    let said = String::from_utf8_lossy(&recorded);
    ensure!(ended.ending == Ending::Status(0), "{:?}\n{said}{}", ended.ending, ended.messages);

    let socket = bench.folder.join("monitor.sock");
    for seed in 1..=SEEDS {
        let mut random = Random::new(seed);
        let mut stream = damaged(&recorded, &mut random);
        // What a board says when it is reset: a boundary, and everything from the start.
        stream.push(0);
        stream.extend_from_slice(&recorded);
        let _ = std::fs::remove_file(&socket);
        let listener = UnixListener::bind(&socket).context("cannot make a socket")?;
        let feeder = thread::spawn(move || feed(&listener, &stream, &mut random));
        let mut command = tool()?;
        command.args(["monitor", "--once", "--port"]).arg(format!("unix:{}", socket.display()));
        command.arg("--elf").arg(&image.elf);
        let said = Said::of(command)?;
        let fed = feeder.join().map_err(|_| anyhow::anyhow!("the feeding thread panicked"))?;
        fed.context("the monitor has hung up")?;
        said.expect_status(0).with_context(|| format!("seed {seed}"))?;
        for core in 0..4 {
            said.expect_line(&format!("hello from core {core}")).with_context(|| format!("seed {seed}"))?;
        }
        let log = said.text().lines().any(|line| line.contains("INFO") && line.contains("4 cores"));
        ensure!(log, "seed {seed}: the log line of the whole stream is missing\n{}", said.text());
    }
    Ok(Outcome::Passed)
}

fn damaged(recorded: &[u8], random: &mut Random) -> Vec<u8> {
    let mut stream = recorded[random.below(recorded.len())..].to_vec();
    for _ in 0..20 {
        if stream.is_empty() {
            break;
        }
        let at = random.below(stream.len());
        match random.below(4) {
            0 => stream[at] = random.below(256) as u8,
            1 => drop(stream.drain(at..(at + random.below(30)).min(stream.len()))),
            2 => stream.insert(at, random.below(256) as u8),
            _ => stream.truncate(at.max(stream.len() / 2)),
        }
    }
    // A panic that nobody had would make the run a failure.
    String::from_utf8_lossy(&stream).contains("@panic").then(Vec::new).unwrap_or(stream)
}

/// Sends the stream in pieces, and hangs up.
fn feed(listener: &UnixListener, stream: &[u8], random: &mut Random) -> std::io::Result<()> {
    let (mut connection, _) = listener.accept()?;
    let mut rest = stream;
    while !rest.is_empty() {
        let (piece, more) = rest.split_at(1 + random.below(rest.len().min(200)));
        connection.write_all(piece)?;
        rest = more;
    }
    Ok(())
}
