//! A project's own verbs beside running and testing: what watches a run, what puts an image on a card, and a board's serial line. QEMU, a
//! pseudo-terminal and a folder stand for the board, the terminal and the card.

use super::super::push::{board, emulator, on_socket};
use super::super::tool::Said;
use super::super::{Bench, Outcome};
use super::Project;
use crate::build::write_flat;
use crate::machine::{Guest, Machine, Size};
use crate::setup::Qemu;
use anyhow::{Context, Result, ensure};
use nix::pty::{Winsize, openpty};
use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// What the application says in the end.
const ANSWER: &str = "the sum is 42";

/// Numbers, a picture and a live view of a run, from one image.
pub fn watched(project: &Project, folder: &Path) -> Result<()> {
    let stats = project.cargo(&["xtask", "stats", "--json", "--smp", "2", "--no-install"])?;
    stats.expect_status(0)?.expect_error(ANSWER)?;
    let text = stats.text();
    let values = text.lines().map(serde_json::from_str).collect::<Result<Vec<serde_json::Value>, _>>();
    let handled: u64 =
        values.context("no JSON")?.iter().filter_map(|core| core["messages_handled"].as_u64()).sum();
    ensure!(text.lines().count() == 2 && handled >= 2, "{handled} messages on two cores:\n{text}");

    let picture = folder.join("run.pftrace");
    let words = ["xtask", "trace", "--no-install", "-o", &picture.to_string_lossy()];
    project.cargo(&words)?.expect_status(0)?.expect_line(ANSWER)?.expect_error(" turns, ")?;
    ensure!(fs::metadata(&picture).context("there is no picture")?.len() > 500, "the picture is empty");
    live(project, &folder.join("frames"))
}

/// The live view, on a terminal, until something has been shown.
fn live(project: &Project, record: &Path) -> Result<()> {
    let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
    let ends = openpty(Some(&size), None).context("cannot make a pseudo-terminal")?;
    let end =
        || Ok::<_, anyhow::Error>(Stdio::from(ends.slave.try_clone().context("cannot copy the terminal")?));
    let words = ["xtask", "top", "--no-install", "--record", &record.to_string_lossy()];
    let mut command = project.command(&words);
    let child = command.stdin(end()?).stdout(end()?).stderr(Stdio::null()).env("TERM", "xterm").spawn();
    let mut child = Ended(child.context("cargo cannot be started")?);
    // Or it would never hear that nobody writes any more.
    drop(command);
    drop(ends.slave);
    let mut keys = File::from(ends.master);
    let mut screen = keys.try_clone().context("cannot copy the terminal")?;
    let shown = thread::spawn(move || {
        let (mut text, mut piece) = (Vec::new(), [0; 4096]);
        while let Ok(count) = screen.read(&mut piece) {
            if count == 0 {
                break;
            }
            text.extend_from_slice(&piece[..count]);
        }
        String::from_utf8_lossy(&text).into_owned()
    });
    let began = Instant::now();
    let frames = || fs::read_to_string(record).map_or(0, |text| text.lines().count());
    let status = loop {
        if let Some(status) = child.0.try_wait().context("it cannot be waited for")? {
            break status;
        }
        ensure!(began.elapsed() < project.patience(), "it does not end: {} frames", frames());
        // Each core's first values are there, so it has been drawn.
        if frames() > 4 {
            keys.write_all(b"q").context("nobody reads the keys")?;
        }
        thread::sleep(Duration::from_millis(200));
    };
    let shown = shown.join().map_err(|_| anyhow::anyhow!("the thread that reads the screen panicked"))?;
    ensure!(status.success() && frames() > 4, "{status}, {} frames\n{shown}", frames());
    // Into the terminal's other screen, and back.
    ensure!(shown.contains("\u{1b}[?1049h") && shown.contains("\u{1b}[?1049l"), "nothing was drawn\n{shown}");
    Ok(())
}

/// Ends it with the case.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A board at the end of a line: one that is listened to, and one with the loader, to which the kernel is pushed. The second is left
/// out where QEMU is too old for it.
pub fn on_the_line(bench: &Bench<'_>, project: &Project) -> Result<()> {
    let socket = bench.folder.join("line.sock");
    let port = format!("unix:{}", socket.display());
    let qemu = Qemu::find().context("QEMU is missing")?;
    let elf = project.folder.join("target/aarch64-unknown-none/release/my-app");
    let machine = Machine::new(2, Size::from_mebibytes(512), None)?;
    let guest = Guest::new(machine, write_flat(&elf)?, bench.limit);
    let listened_to = on_socket(&qemu, &guest, &socket, "on")?;
    let words = ["xtask", "monitor", "--once", "--port", &port, "--elf", &elf.to_string_lossy()];
    says(&project.cargo(&words)?, "virt, 2 cores")?;
    drop(listened_to);

    let qemu = match emulator() {
        Ok(qemu) => qemu,
        Err(Outcome::Skipped(_) | Outcome::Passed) => return Ok(()),
    };
    let _board = board(bench, &qemu, &socket)?;
    let pushed = project.cargo(&["xtask", "push", "--once", "--no-install", "--port", &port])?;
    says(&pushed, "4 cores")?;
    pushed.expect_error("100 %")?;
    Ok(())
}

/// The application has run, and its log was decoded.
fn says(said: &Said, machine: &str) -> Result<()> {
    said.expect_status(0)?.expect_line(ANSWER)?;
    let text = said.text();
    ensure!(text.contains(machine) && text.contains("INFO"), "no {machine}\n{text}");
    Ok(())
}
