//! One run of a guest: starts QEMU, hands on what arrives on the serial line, and always ends QEMU.
//!
//! Two threads read QEMU's standard output and standard error and send what they get to the caller's thread, which watches
//! the time limit and Ctrl-C. A listener that has no room for more is asked again and again, so that these are watched all
//! the same. If the guest is given what is typed, a third writes what is typed to its serial line: it may wait for
//! a guest that does not read, and nobody else does. QEMU is killed and waited for whenever this tool leaves the run in any
//! way, and the system kills it if this tool is killed, so nothing is left behind.

use super::line::Line;
use super::raspi4b;
use super::{Guest, Typed, guest_command};
use crate::build::Board;
use crate::serial::typed;
use anyhow::{Context, Result};
use std::io::Read;
use std::ops::ControlFlow;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

/// How often Ctrl-C and the time limit are looked at while nothing arrives.
const GLANCE: Duration = Duration::from_millis(50);
/// How long a listener without room may take for what is on its way when the guest has been ended.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// How much of QEMU's own messages is kept, in bytes.
const MAX_MESSAGES_BYTES: usize = 64 * 1024;
/// How many pieces of output wait for the caller at most; QEMU waits then.
const MAX_PIECES: usize = 64;

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
    /// The caller wants no more of its output.
    Unheard,
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
                "the time limit of {} s was reached and QEMU was ended; --timeout allows more, MAGPIE_TIMEOUT of cargo run and cargo test",
                limit.as_secs()
            ),
            Ending::Interrupted => "interrupted; QEMU was ended".into(),
            Ending::Unheard => "nobody reads the output any more; QEMU was ended".into(),
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

/// As if the user had.
pub fn interrupt() {
    INTERRUPTED.store(true, Ordering::Relaxed);
}

/// Who hears what a guest says.
pub trait Listener {
    /// Whether there is room for more. If not, QEMU waits, and with it the guest.
    fn is_ready(&self) -> bool;
    /// Takes the next bytes, without waiting for anybody; or has had enough.
    fn hear(&mut self, bytes: &[u8]) -> ControlFlow<()>;
    /// Asked now and then while nothing arrives: whether it has had enough.
    fn is_content(&mut self) -> bool {
        false
    }
    /// What is typed for the guest, a line at a time; asked for once, if the guest is to be given anything.
    fn typed(&mut self) -> Receiver<Vec<u8>> {
        typed::lines()
    }
}

/// Always has room, and never enough.
struct Insatiable<'a>(&'a mut dyn FnMut(&[u8]));

impl Listener for Insatiable<'_> {
    fn is_ready(&self) -> bool {
        true
    }

    fn hear(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        (self.0)(bytes);
        ControlFlow::Continue(())
    }
}

/// Boots the guest and hands on its serial output as it arrives.
pub fn run(qemu: &Path, guest: &Guest, on_output: &mut dyn FnMut(&[u8])) -> Result<Run> {
    run_while_heard(qemu, guest, &mut Insatiable(on_output))
}

/// As [`run`], as long and as fast as the listener wants.
pub fn run_while_heard(qemu: &Path, guest: &Guest, listener: &mut dyn Listener) -> Result<Run> {
    let mut guest = guest.clone();
    if guest.machine.board == Board::Rpi4 && guest.tree.is_none() {
        let tree = guest.image.flat.with_extension("dtb");
        raspi4b::write_tree(&tree)?;
        guest.tree = Some(tree);
    }
    let guest = &guest;
    let began = Instant::now();
    let mut command = guest_command(qemu, guest);
    end_with_this_tool(&mut command);
    let line = guest.machine.attached.line.as_ref().map(|net| Line::of(net, &mut command)).transpose()?;
    let child = command
        .stdin(if guest.typed == Typed::Nothing { Stdio::null() } else { Stdio::piped() })
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("{} cannot be started", qemu.display()))?;
    let mut child = Ended(child);
    line.into_iter().for_each(Line::carry);
    let (sender, receiver) = mpsc::sync_channel(MAX_PIECES);
    let stdout = child.0.stdout.take().context("QEMU has no output")?;
    let stderr = child.0.stderr.take().context("QEMU has no error output")?;
    let errors = sender.clone();
    thread::spawn(move || read_all(stdout, &sender, From::Serial));
    thread::spawn(move || read_all(stderr, &errors, From::Qemu));

    if let Some(input) = child.0.stdin.take() {
        let lines = listener.typed();
        thread::spawn(move || typed::copy_to(input, &lines));
    }

    let mut messages = Vec::new();
    let mut spoke = false;
    let (mut ending, mut ended, mut is_heard) = (None, None, true);
    loop {
        let is_ready = listener.is_ready();
        if !is_ready {
            if ended.is_some_and(|ended: Instant| ended.elapsed() >= LAST_WORDS) {
                break;
            }
            thread::sleep(GLANCE);
        }
        let piece = if is_ready { receiver.recv_timeout(GLANCE) } else { Err(RecvTimeoutError::Timeout) };
        match piece {
            Ok((From::Serial, bytes)) => {
                spoke = true;
                is_heard = is_heard && listener.hear(&bytes).is_continue();
            }
            Ok((From::Qemu, bytes)) => {
                messages.extend_from_slice(&bytes);
                messages.truncate(MAX_MESSAGES_BYTES);
            }
            Err(RecvTimeoutError::Timeout) => is_heard = is_heard && !listener.is_content(),
            // Both ends are closed: QEMU has ended.
            Err(RecvTimeoutError::Disconnected) => break,
        }
        // Once QEMU was ended, the loop only takes what is still on its way.
        if ending.is_none() {
            if interrupted() {
                ending = Some(Ending::Interrupted);
            // A guest that has ended by itself has kept to the limit, however long its output is read.
            } else if began.elapsed() >= guest.limit && matches!(child.0.try_wait(), Ok(None)) {
                ending = Some(Ending::TimeLimit);
            } else if !is_heard {
                ending = Some(Ending::Unheard);
            }
            if ending.is_some() {
                child.end();
                ended = Some(Instant::now());
            }
        }
    }
    // The threads that read end with this.
    drop(receiver);
    let status = child.0.wait().context("QEMU cannot be waited for")?;
    if interrupted() {
        // Ctrl-C reaches QEMU too, and it may have ended before we looked.
        ending = Some(Ending::Interrupted);
    }
    let messages = String::from_utf8_lossy(&messages).into_owned();
    Ok(Run {
        ending: ending.unwrap_or_else(|| ending_of(status, &messages)),
        messages,
        spoke,
        time: began.elapsed(),
    })
}

/// Makes the system end QEMU if this tool is killed in a way that it cannot see.
pub fn end_with_this_tool(command: &mut Command) {
    #[cfg(target_os = "linux")]
    {
        use nix::sys::{prctl, signal::Signal};
        use std::os::unix::process::CommandExt;
        let tool = nix::unistd::getpid();
        let ask = move || {
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            // It may have been killed before it was asked.
            if nix::unistd::getppid() == tool { Ok(()) } else { Err(nix::Error::ESRCH.into()) }
        };
        // SAFETY: between fork and exec only functions may be called that are safe in a signal handler. These are two system
        // calls, and neither allocates.
        unsafe { command.pre_exec(ask) };
    }
    #[cfg(not(target_os = "linux"))]
    let _ = command;
}

/// QEMU catches the signals that ask it to end, and ends with success; but it says so.
fn signal_in(messages: &str) -> Option<i32> {
    let (_, rest) = messages.rsplit_once("terminating on signal ")?;
    rest.split(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
}

fn ending_of(status: ExitStatus, messages: &str) -> Ending {
    if let Some(signal) = signal_in(messages) {
        return Ending::Signal(signal);
    }
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

/// How long what QEMU writes is let come together before it is read. It writes each byte of the serial line alone, and to wake up for each takes
/// as much of a processor as a tenth of the guest.
const GATHERS: Duration = Duration::from_millis(4);

fn read_all(mut source: impl Read, sink: &SyncSender<(From, Vec<u8>)>, from: From) {
    let mut buffer = vec![0; 64 * 1024];
    loop {
        match source.read(&mut buffer) {
            Ok(0) | Err(_) => return,
            Ok(count) => {
                if sink.send((from, buffer[..count].to_vec())).is_err() {
                    return;
                }
                thread::sleep(GATHERS);
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

#[cfg(test)]
mod tests {
    use super::signal_in;

    #[test]
    fn a_signal_that_qemu_caught_is_found() {
        let said = "qemu-system-aarch64: terminating on signal 15 from pid 123 (kill)\n";
        assert_eq!(signal_in(said), Some(15));
        assert_eq!(signal_in("qemu-system-aarch64: terminating on signal 2\n"), Some(2));
        assert_eq!(signal_in("warning: something else\n"), None);
        assert_eq!(signal_in("terminating on signal \n"), None);
    }
}
