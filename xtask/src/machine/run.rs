//! One run of a guest: starts QEMU, hands on what arrives on the serial line, and always ends QEMU.
//!
//! What is typed goes to the serial line if the guest takes commands. Two threads read QEMU's standard output and standard error and send what they get to the caller's
//! thread, which watches the time limit and Ctrl-C. QEMU is killed and waited for whenever this tool leaves
//! the run in any way, so nothing is left behind.

use super::raspi4b;
use super::{Guest, guest_command};
use crate::build::Board;
use crate::serial::typed;
use anyhow::{Context, Result};
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// How often Ctrl-C and the time limit are looked at while nothing arrives.
const GLANCE: Duration = Duration::from_millis(50);
/// How much of QEMU's own messages is kept, in bytes.
const MAX_MESSAGES_BYTES: usize = 64 * 1024;

/// Set by Ctrl-C and by a request to end. Relaxed: it is a flag on its own, it publishes no other data.
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ending {
    /// The guest ended with this status (or QEMU refused to start).
    Status(u8),
    /// QEMU was ended by this signal, not sent by us.
    Signal(i32),
    /// The time limit was reached.
    TimeLimit,
    /// The user pressed Ctrl-C.
    Interrupted,
}

/// What is known about a run that has ended.
#[derive(Debug)]
pub struct Run {
    /// How it ended.
    pub ending: Ending,
    /// What QEMU itself said.
    pub messages: String,
    /// Whether the guest said anything.
    pub spoke: bool,
    /// How long it took.
    pub time: Duration,
}

impl Run {
    /// One line about the ending, for a run that did not end with success.
    pub fn describe(&self, limit: Duration) -> String {
        let said = match self.messages.lines().rfind(|line| !line.trim().is_empty()) {
            Some(line) => format!(" ({})", line.trim()),
            None => String::new(),
        };
        match self.ending {
            Ending::Status(0) => "the kernel ended with success".into(),
            Ending::Status(_) if !self.spoke && !said.is_empty() => {
                format!("QEMU did not start the kernel{said}")
            }
            Ending::Status(status) => format!("the kernel ended with failure, status {status}"),
            Ending::Signal(signal) => format!("QEMU died of signal {signal}{said}; run the command again"),
            Ending::TimeLimit => format!(
                "the time limit of {} s was reached and QEMU was ended; give --timeout to allow more",
                limit.as_secs()
            ),
            Ending::Interrupted => "interrupted; QEMU was ended".into(),
        }
    }
}

/// Makes Ctrl-C end the guest rather than this tool alone. To be called once, before [`run`].
pub fn catch_interrupts() -> Result<()> {
    ctrlc::set_handler(|| INTERRUPTED.store(true, Ordering::Relaxed)).context("Ctrl-C cannot be caught")
}

/// Whether the user pressed Ctrl-C.
pub fn interrupted() -> bool {
    INTERRUPTED.load(Ordering::Relaxed)
}

/// Boots the guest and hands on its serial output as it arrives.
pub fn run(qemu: &Path, guest: &Guest, on_output: &mut dyn FnMut(&[u8])) -> Result<Run> {
    let mut guest = guest.clone();
    if guest.machine.board == Board::Rpi4 && guest.tree.is_none() {
        let tree = guest.image.flat.with_extension("dtb");
        raspi4b::write_tree(&tree)?;
        guest.tree = Some(tree);
    }
    let guest = &guest;
    let began = Instant::now();
    let child = guest_command(qemu, guest)
        .stdin(if guest.commands { Stdio::piped() } else { Stdio::null() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} cannot be started", qemu.display()))?;
    let mut child = Ended(child);
    let (sender, receiver) = mpsc::channel();
    let stdout = child.0.stdout.take().context("QEMU has no output")?;
    let stderr = child.0.stderr.take().context("QEMU has no error output")?;
    let errors = sender.clone();
    thread::spawn(move || read_all(stdout, &sender, From::Serial));
    thread::spawn(move || read_all(stderr, &errors, From::Qemu));

    let mut input = child.0.stdin.take();
    let typed = if guest.commands { typed::lines() } else { typed::nothing() };

    let mut messages = Vec::new();
    let mut spoke = false;
    let mut ending = None;
    loop {
        for line in typed.try_iter() {
            // A guest that has ended takes nothing more; that is noticed below.
            let _ = input.as_mut().map(|input| input.write_all(&line));
        }
        match receiver.recv_timeout(GLANCE) {
            Ok((From::Serial, bytes)) => {
                spoke = true;
                on_output(&bytes);
            }
            Ok((From::Qemu, bytes)) => {
                messages.extend_from_slice(&bytes);
                messages.truncate(MAX_MESSAGES_BYTES);
            }
            Err(RecvTimeoutError::Timeout) => {}
            // Both ends are closed: QEMU has ended.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        // Once QEMU was ended, the loop only takes what is still on its way.
        if ending.is_none() {
            if interrupted() {
                ending = Some(Ending::Interrupted);
            } else if began.elapsed() >= guest.limit {
                ending = Some(Ending::TimeLimit);
            }
            if ending.is_some() {
                child.end();
            }
        }
    }
    let status = child.0.wait().context("QEMU cannot be waited for")?;
    if interrupted() {
        // Ctrl-C reaches QEMU too, and it may have ended before we looked.
        ending = Some(Ending::Interrupted);
    }
    Ok(Run {
        ending: ending.unwrap_or_else(|| ending_of(status)),
        messages: String::from_utf8_lossy(&messages).into_owned(),
        spoke,
        time: began.elapsed(),
    })
}

fn ending_of(status: ExitStatus) -> Ending {
    match (status.code(), status.signal()) {
        (Some(code), _) => Ending::Status(u8::try_from(code).unwrap_or(crate::failure::FAILURE)),
        (None, Some(signal)) => Ending::Signal(signal),
        (None, None) => Ending::Status(crate::failure::FAILURE),
    }
}

#[derive(Clone, Copy)]
enum From {
    Serial,
    Qemu,
}

fn read_all(mut source: impl Read, sink: &Sender<(From, Vec<u8>)>, from: From) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match source.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                if sink.send((from, buffer[..count].to_vec())).is_err() {
                    return;
                }
            }
        }
    }
}

/// A child that does not outlive its owner.
struct Ended(Child);

impl Ended {
    fn end(&mut self) {
        // It may have ended by itself meanwhile; then there is nothing to do.
        let _ = self.0.kill();
    }
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.end();
        let _ = self.0.wait();
    }
}
