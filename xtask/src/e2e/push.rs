//! The chain loader, with QEMU's `raspi4b` for a board: its serial line in a socket, and in a pseudo-terminal on a host that
//! has much else to do.

use super::pty::{self, Damage};
use super::tool::{Said, tool_as_it_is};
use super::{Bench, Case, Outcome};
use crate::build::{build_loader, write_flat};
use crate::machine::{Guest, Machine, guest_command, write_tree};
use crate::setup::{OLDEST_FOR_RASPI4B, Qemu};
use anyhow::{Context, Result, ensure};
use std::ffi::OsString;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

pub const CASES: &[Case] = &[
    ("push::a_kernel_goes_over_the_line_and_runs", push),
    ("push::a_terminal_on_a_busy_host_is_enough", |bench| on_terminal(bench, None)),
    ("push::a_bad_line_is_enough", |bench| on_terminal(bench, Some(BAD))),
    ("push::an_interrupted_one_goes_on", interrupted),
    ("push::missing_ports_are_named", missing_port),
];

/// Some faults in a kernel of a few hundred thousand bytes, but for its end.
const BAD: Damage = Damage { one_of: 40_000, changes: true, until: 200_000 };
/// Busy threads for each processor of the host.
const LOAD: usize = 4;
/// How long they are. An emulator of which little runs takes many minutes for the whole kernel.
const LOADED: Duration = Duration::from_secs(10);

const EXAMPLE: &str = "hello";

/// Ends QEMU with the case.
pub struct Board(Child);

impl Drop for Board {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A board with the loader on its card.
pub fn board(bench: &Bench<'_>, qemu: &Qemu, socket: &Path) -> Result<Board> {
    let tree = bench.folder.join("push.dtb");
    write_tree(&tree)?;
    let guest = Guest {
        tree: Some(tree),
        ..Guest::new(Machine::raspi4b(), write_flat(&build_loader()?)?, bench.limit)
    };
    on_socket(qemu, &guest, socket, "off")
}

/// A guest with its serial line in a socket, which begins at once, or with `wait` on when somebody listens there.
pub fn on_socket(qemu: &Qemu, guest: &Guest, socket: &Path, wait: &str) -> Result<Board> {
    let _ = std::fs::remove_file(socket);
    let usual = guest_command(&qemu.path, guest);
    // The usual command, with the serial line in the socket in place of standard output; and all cores on one thread of the
    // host's, because those that wait to be started would keep a processor of it busy each.
    let line = OsString::from(format!("unix:{},server=on,wait={wait}", socket.display()));
    let words = usual.get_args().map(|word| match word.to_str() {
        Some("stdio") => line.as_os_str(),
        Some("tcg,thread=multi") => "tcg,thread=single".as_ref(),
        _ => word,
    });
    let mut command = Command::new(&qemu.path);
    command.args(words).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let board = Board(command.spawn().context("QEMU cannot be started")?);
    let began = Instant::now();
    while !socket.exists() {
        ensure!(began.elapsed() < Duration::from_secs(20), "QEMU makes no socket");
        thread::sleep(Duration::from_millis(20));
    }
    Ok(board)
}

/// The newest QEMU, or why there is none for the board.
pub fn emulator() -> Result<Qemu, Outcome> {
    let found = Qemu::find().filter(|qemu| qemu.version >= OLDEST_FOR_RASPI4B);
    found.ok_or_else(|| Outcome::Skipped(format!("QEMU is older than {OLDEST_FOR_RASPI4B}")))
}

fn push_to(port: &str) -> Result<Command> {
    let mut command = tool_as_it_is()?;
    command.args(["push", EXAMPLE, "--once", "--no-install", "--port", port]);
    Ok(command)
}

/// The kernel has arrived, and runs on all cores.
fn expect_hello(said: &Said) -> Result<()> {
    said.expect_status(0)?.expect_error("100 %")?;
    for core in 0..4 {
        said.expect_line(&format!("hello from core {core}"))?;
    }
    Ok(())
}

fn push(bench: &Bench<'_>) -> Result<Outcome> {
    let qemu = match emulator() {
        Ok(qemu) => qemu,
        Err(skipped) => return Ok(skipped),
    };
    let socket = bench.folder.join("push.sock");
    let _board = board(bench, &qemu, &socket)?;
    expect_hello(&Said::of(push_to(&format!("unix:{}", socket.display()))?)?)?;
    Ok(Outcome::Passed)
}

/// Threads that are busy until this is dropped, or for as long as the load lasts.
struct Load(Arc<AtomicBool>);

impl Load {
    fn start() -> Self {
        let over = Arc::new(AtomicBool::new(false));
        for _ in 0..LOAD * thread::available_parallelism().map_or(1, Into::into) {
            let over = over.clone();
            let began = Instant::now();
            // Relaxed: the flag publishes nothing else.
            thread::spawn(move || while !over.load(Ordering::Relaxed) && began.elapsed() < LOADED {});
        }
        Self(over)
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

fn on_terminal(bench: &Bench<'_>, damage: Option<Damage>) -> Result<Outcome> {
    if !cfg!(target_os = "linux") {
        return Ok(Outcome::Skipped("elsewhere a terminal has no speed of a serial port".into()));
    }
    let qemu = match emulator() {
        Ok(qemu) => qemu,
        Err(skipped) => return Ok(skipped),
    };
    let socket = bench.folder.join("push-pty.sock");
    let _board = board(bench, &qemu, &socket)?;
    let port = pty::to(&socket, damage)?;
    let _load = damage.is_none().then(Load::start);
    let said = Said::of(push_to(&port.to_string_lossy())?)?;
    expect_hello(&said)?;
    if damage.is_some() {
        said.expect_error("again (try 2 of ")?;
    }
    Ok(Outcome::Passed)
}

fn interrupted(bench: &Bench<'_>) -> Result<Outcome> {
    let qemu = match emulator() {
        Ok(qemu) => qemu,
        Err(skipped) => return Ok(skipped),
    };
    let socket = bench.folder.join("push-twice.sock");
    let _board = board(bench, &qemu, &socket)?;
    let port = format!("unix:{}", socket.display());
    let mut first =
        push_to(&port)?.stderr(Stdio::piped()).spawn().context("this tool cannot start itself")?;
    let lines = BufReader::new(first.stderr.take().context("it has no errors")?).lines();
    let reached = lines.map_while(Result::ok).find(|line| line.ends_with("30 %"));
    first.kill().context("cannot kill")?;
    first.wait().context("cannot wait")?;
    reached.context("it got nowhere")?;
    let said = Said::of(push_to(&port)?)?;
    expect_hello(&said)?;
    said.expect_error("% of this kernel from before; going on there")?;
    Ok(Outcome::Passed)
}

fn missing_port(bench: &Bench<'_>) -> Result<Outcome> {
    for verb in [&["push", EXAMPLE, "--no-install"][..], &["monitor", "--elf"]] {
        let mut command = tool_as_it_is()?;
        command.args(verb);
        if verb[0] == "monitor" {
            command.arg(bench.workspace.target().join("rpi4/aarch64-unknown-none/release/hello"));
        }
        command.args(["--port", "/dev/magpie-nonesuch"]);
        Said::of(command)?.expect_status(2)?.expect_error("plug the adapter in")?;
    }
    Ok(Outcome::Passed)
}
