//! `cargo xtask qemu`: sets up what is missing, builds an application, boots it on QEMU and shows what it prints.

use crate::build::{Board, Features, Workspace, build_application, write_flat};
use crate::failure::{FAILURE, INTERRUPTED, SUCCESS, USAGE, usage};
use crate::machine::{
    Console, Debugger, Disk, Ending, Gic, Guest, Listener, Machine, Net, Size, Typed, catch_interrupts,
    interrupted, run_while_heard, write_script,
};
use crate::serial::script::Script;
use crate::serial::source::{Played, Source};
use crate::serial::typed;
use crate::setup::{Install, OLDEST_FOR_RASPI4B, OLDEST_FOR_VIRT, Qemu, ready_target};
use crate::stream::{Decoder, Notice, Outlet, Output};
use crate::trace::dump;
use anyhow::{Context, Result};
use clap::Args;
use std::fs::File;
use std::io::{self, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::{Duration, Instant};

/// What to boot, on which machine.
#[derive(Args)]
pub struct Options {
    /// The application to run [default: the only one, or the workspace's choice]
    app: Option<String>,
    /// The file that the guest processes [default: the application's own input.txt, if it has one]
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// The device tree to hand over in place of QEMU's own
    #[arg(long, value_name = "FILE")]
    dtb: Option<PathBuf>,
    /// The board to build for and to emulate
    #[arg(long, default_value_t)]
    board: Board,
    /// How many cores [default: 4]
    #[arg(long, value_name = "N")]
    smp: Option<u32>,
    /// How much memory, like 512M or 2G [default: 512M]
    #[arg(long, value_name = "SIZE")]
    memory: Option<Size>,
    /// The interrupt controller's version [default: 2 up to 8 cores, else 3]
    #[arg(long, value_name = "2|3")]
    gic: Option<Gic>,
    /// Enter the kernel at EL2, as on a board
    #[arg(long)]
    el2: bool,
    /// QEMU's name of the processor [default: cortex-a72]
    #[arg(long)]
    cpu: Option<String>,
    /// After how many seconds to end QEMU [default: 300; with --gdb a day]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    timeout: Option<u64>,
    /// The file that is the guest's disk: a virtio one. What the guest writes stays there
    #[arg(long, value_name = "FILE")]
    disk: Option<PathBuf>,
    /// With --board rpi4: the file that is the card in its slot. What the guest writes stays there
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// Give the guest a virtio network card, on a network of QEMU's own: the host is 10.0.2.2 there, and gives addresses
    #[arg(long)]
    net: bool,
    /// Give the guest a second serial port with a network on it, in place of a card: addresses are as with --net
    #[arg(long, conflicts_with = "net")]
    line: bool,
    /// With --net or --line: what comes to a TCP port of this machine goes to a port of the guest; may be given several times
    #[arg(long, value_name = "[ADDRESS:]HOST:GUEST")]
    forward: Vec<String>,
    /// With --net: of a hundred frames, each way, so many are lost, as many doubled, and as many overtaken by the next
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=30), requires = "net")]
    loss: Option<u8>,
    /// Give the guest a virtio console: a TCP port of this machine is its other end
    #[arg(long, value_name = "PORT")]
    console: Option<u16>,
    /// Give the guest a virtio source of random numbers
    #[arg(long)]
    random: bool,
    /// Count instructions: one is one nanosecond of guest time, on one host thread
    #[arg(long)]
    icount: bool,
    /// Boot arguments, words of the form key=value
    #[arg(long, value_name = "WORDS", default_value = "", allow_hyphen_values = true)]
    append: String,
    /// Take commands: what is typed here goes to the guest's serial port; `help` lists them
    #[arg(long)]
    commands: bool,
    /// Send the commands of this file, in place of what is typed: docs/host-tool.md says what else may be in it
    #[arg(long, value_name = "FILE", conflicts_with = "typed")]
    script: Option<PathBuf>,
    /// Give the application what is typed here, by the guest's serial port
    #[arg(long, conflicts_with = "commands")]
    typed: bool,
    /// Let gdb come, at this port; says how
    #[arg(long, value_name = "PORT", num_args = 0..=1, require_equals = true, default_missing_value = "1234")]
    gdb: Option<u16>,
    /// With --gdb: wait for it before the first instruction
    #[arg(long, requires = "gdb")]
    wait: bool,
    /// Use the portable primitives in place of the hand-written exclusives
    #[arg(long)]
    portable: bool,
    /// Build optimised; images always are, so this is the default
    #[arg(long)]
    release: bool,
    /// Never install anything: stop with status 2 when something is missing
    #[arg(long)]
    no_install: bool,
}

/// What `cargo xtask qemu` accepts.
#[derive(Args)]
pub struct WithDump {
    /// What to boot.
    #[command(flatten)]
    pub options: Options,
    /// Keep the last dump in this file: of a panic of the kernel, or asked for by the command dump
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
}

/// Runs the verb.
pub fn execute(WithDump { options, dump }: WithDump) -> Result<u8> {
    super::runner::say_what_is_ignored();
    // What is wrong with it is said before anything is built.
    let script = options.script.as_deref().map(Script::read).transpose()?;
    let dumps = dump.as_deref().map(dump::Writer::create).transpose()?;
    let (qemu, guest) = ready(options, false)?;
    catch_interrupts()?;
    let source = match guest.typed {
        Typed::Nothing => None,
        Typed::Commands => Some(Source::of_commands(script, true)?),
        Typed::Application => Some(Source::as_it_is()),
    };
    show(&qemu, &guest, source, dumps)
}

/// Who is handed all that a guest says, until it has heard enough.
pub type Hearer<'a> = &'a mut dyn FnMut(Output) -> ControlFlow<()>;

/// What a guest says, decoded for somebody.
struct Heard<'a> {
    decoder: Decoder,
    lines: Option<Receiver<Vec<u8>>>,
    hearer: Hearer<'a>,
    has_panicked: bool,
    has_enough: bool,
}

impl Heard<'_> {
    fn decode(&mut self, decode: impl FnOnce(&mut Decoder, &mut dyn FnMut(Output))) {
        let Self { decoder, hearer, has_panicked, has_enough, .. } = self;
        decode(decoder, &mut |output| {
            *has_panicked |= matches!(output, Output::Notice(Notice::Panic(_)));
            *has_enough |= hearer(output).is_break();
        });
    }
}

impl Listener for Heard<'_> {
    fn is_ready(&self) -> bool {
        true
    }

    fn hear(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.decode(|decoder, sink| decoder.push(bytes, sink));
        if self.has_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn typed(&mut self) -> Receiver<Vec<u8>> {
        self.lines.take().unwrap_or_else(typed::lines)
    }
}

/// Boots what the options ask for, with more boot arguments, and hands on all that it says. Returns what its end comes to; it is well if the
/// hearer has had enough.
pub fn hear(options: Options, words: &str, hearer: Hearer<'_>) -> Result<u8> {
    hear_with(options, words, None, hearer)
}

/// The same of a kernel that takes commands: these lines.
pub fn hear_and_tell(
    mut options: Options,
    words: &str,
    lines: Receiver<Vec<u8>>,
    hearer: Hearer<'_>,
) -> Result<u8> {
    options.commands = true;
    hear_with(options, words, Some(lines), hearer)
}

fn hear_with(
    mut options: Options,
    words: &str,
    lines: Option<Receiver<Vec<u8>>>,
    hearer: Hearer<'_>,
) -> Result<u8> {
    if options.script.is_some() {
        return Err(usage("--script is for cargo xtask qemu, and for monitor"));
    }
    options.append = format!("{} {words}", options.append);
    let (qemu, guest) = ready(options, true)?;
    let decoder = Decoder::for_elf(&guest.image.elf)?;
    catch_interrupts()?;
    let mut heard = Heard { decoder, lines, hearer, has_panicked: false, has_enough: false };
    let run = run_while_heard(&qemu.path, &guest, &mut heard)?;
    heard.decode(|decoder, sink| decoder.finish(sink));
    Ok(match run.ending {
        Ending::Status(SUCCESS) | Ending::Unheard if !heard.has_panicked => SUCCESS,
        Ending::Interrupted => INTERRUPTED,
        Ending::Status(status) if status != SUCCESS && status != USAGE => status,
        _ => {
            eprintln!("xtask: {}", run.describe(guest.limit));
            FAILURE
        }
    })
}

/// Sets up what is missing, and builds what the options name.
fn ready(options: Options, traced: bool) -> Result<(Qemu, Guest)> {
    // Everything that can be wrong about the command is said before anything is installed or built.
    let machine = machine(&options)?;
    if let Some(input) = &options.input {
        machine.check_input(input)?;
    }
    if let Some(tree) = &options.dtb {
        check_tree(tree)?;
    }
    let workspace = Workspace::load()?;
    let app = workspace.chosen(options.app.as_deref())?;
    let folder = workspace.application(app)?;
    let input = match options.input {
        Some(input) => Some(input),
        None => Some(folder.join("input.txt")).filter(|path| path.exists()),
    };
    if let Some(input) = &input {
        machine.check_input(input)?;
    }

    let install = Install::unless(options.no_install);
    ready_target(install)?;
    let oldest = if options.board == Board::Rpi4 { OLDEST_FOR_RASPI4B } else { OLDEST_FOR_VIRT };
    let qemu = Qemu::ready(oldest, install)?;
    let (board, portable) = (options.board, options.portable);
    let elf = build_application(app, Features { board, portable, traced, ..Features::default() })?;
    let image = write_flat(&elf)?;
    if let Some(debugger) = machine.debugger {
        let script = write_script(workspace.target())?;
        eprintln!("xtask: for gdb: {}", debugger.command(&script, &image.elf));
        eprintln!("xtask: it knows 'magpie cores', 'processes', 'mailboxes' and 'backtrace'");
    }
    let usual_limit = if machine.debugger.is_some() { A_DAY_SECONDS } else { USUAL_LIMIT_SECONDS };
    let guest = Guest {
        machine,
        image,
        input,
        tree: options.dtb,
        arguments: options.append,
        limit: Duration::from_secs(options.timeout.unwrap_or(usual_limit)),
        typed: match () {
            () if options.commands || options.script.is_some() => Typed::Commands,
            () if options.typed => Typed::Application,
            () => Typed::Nothing,
        },
    };
    Ok((qemu, guest))
}

/// What the options come to, or what is wrong with them: for those who try many.
#[doc(hidden)]
pub fn checked(options: &Options) -> Result<(Machine, &str)> {
    Ok((machine(options)?, &options.append))
}

/// The time limits, unless one is given: nobody waits for a guest for ever, and nobody hurries who debugs one.
const USUAL_LIMIT_SECONDS: u64 = 300;
const A_DAY_SECONDS: u64 = 24 * 60 * 60;

/// The machine that the options ask for, and how a debugger may come.
fn machine(options: &Options) -> Result<Machine> {
    let debugger = options.gdb.map(|port| Debugger::checked(port, options.wait)).transpose()?;
    Ok(Machine { debugger, ..bare_machine(options)? })
}

fn bare_machine(options: &Options) -> Result<Machine> {
    if !options.forward.is_empty() && !options.net && !options.line {
        return Err(usage("--forward is for a guest with a network: add --net, or --line"));
    }
    if options.board == Board::Rpi4 {
        let fixed = [
            ("--smp", options.smp.is_some_and(|cores| cores != 4)),
            ("--memory", options.memory.is_some()),
            ("--gic", options.gic.is_some()),
            ("--cpu", options.cpu.is_some()),
            ("--el2", options.el2),
        ];
        if let Some((option, _)) = fixed.into_iter().find(|(_, given)| *given) {
            return Err(usage(format!(
                "{option} cannot be changed with --board rpi4: the board has 4 cores and enters at EL2, and QEMU gives it 2G"
            )));
        }
        let given = [
            ("--disk", options.disk.is_some()),
            ("--net", options.net),
            ("--console", options.console.is_some()),
            ("--random", options.random),
        ];
        for (option, given) in given {
            if given {
                let instead =
                    if option == "--net" { "; it has a network over its serial line: --line" } else { "" };
                return Err(usage(format!(
                    "{option} is for virt: QEMU's raspi4b has no devices of virtio{instead}"
                )));
            }
        }
        let mut machine = Machine { icount: options.icount, ..Machine::raspi4b() };
        machine.attached.card = options.card.as_deref().map(Disk::checked_card).transpose()?;
        machine.attached.line = options.line.then(|| Net::checked(&options.forward)).transpose()?;
        return Ok(machine);
    }
    if options.card.is_some() {
        return Err(usage("--card is for the Raspberry Pi 4: add --board rpi4; on virt there is --disk"));
    }
    let memory = options.memory.unwrap_or(Size::from_mebibytes(512));
    let mut machine = Machine::new(options.smp.unwrap_or(4), memory, options.gic)?;
    machine.el2 = options.el2;
    machine.icount = options.icount;
    machine.attached.disk = options.disk.as_deref().map(Disk::checked).transpose()?;
    machine.attached.has_random = options.random;
    machine.attached.console = options.console.map(Console::checked).transpose()?;
    machine.attached.net = options.net.then(|| net(options)).transpose()?;
    machine.attached.line = options.line.then(|| Net::checked(&options.forward)).transpose()?;
    if let Some(cpu) = &options.cpu {
        machine.cpu.clone_from(cpu);
    }
    Ok(machine)
}

/// The network behind a card.
fn net(options: &Options) -> Result<Net> {
    let net = Net::checked(&options.forward)?;
    match options.loss {
        Some(percent) => net.with_loss(percent),
        None => Ok(net),
    }
}

/// A device tree begins with a magic number; QEMU's own message about a wrong file says less.
fn check_tree(path: &Path) -> Result<()> {
    const MAGIC: [u8; 4] = [0xd0, 0x0d, 0xfe, 0xed];
    let mut start = [0; 4];
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut start));
    let shown = path.display();
    match read {
        Err(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
            Err(usage(format!("cannot read the device tree {shown} ({error}): give an existing file")))
        }
        Ok(()) if start == MAGIC => Ok(()),
        _ => Err(usage(format!("{shown} is no flattened device tree: make one with `dtc -I dts -O dtb`"))),
    }
}

/// How long an ended guest's output may still take to be read.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// Shows what a guest says.
struct Shown {
    decoder: Decoder,
    outlet: Outlet,
    panic_message: Option<String>,
    dumps: Option<dump::Writer>,
    played: Played,
    lines: Option<Receiver<Vec<u8>>>,
}

impl Shown {
    fn decode(&mut self, decode: impl FnOnce(&mut Decoder, &mut dyn FnMut(Output))) {
        let Self { decoder, outlet, panic_message, dumps, played, .. } = self;
        decode(decoder, &mut |output| {
            if let Output::Notice(Notice::Panic(message)) = &output {
                panic_message.get_or_insert_with(|| message.clone());
            }
            played.hear(&output);
            dumps.iter_mut().for_each(|dumps| dumps.take(&output));
            outlet.put(output);
        });
    }
}

impl Listener for Shown {
    fn is_ready(&self) -> bool {
        self.outlet.is_ready()
    }

    fn hear(&mut self, bytes: &[u8]) -> ControlFlow<()> {
        self.decode(|decoder, sink| decoder.push(bytes, sink));
        let has_enough = self.outlet.has_failed() || self.played.is_over();
        if has_enough { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn is_content(&mut self) -> bool {
        self.played.is_over()
    }

    fn typed(&mut self) -> Receiver<Vec<u8>> {
        self.lines.take().unwrap_or_else(typed::lines)
    }
}

/// Boots a guest that is given nothing, shows what it prints as it happens, and returns its exit status.
pub fn show_guest(qemu: &Qemu, guest: &Guest) -> Result<u8> {
    catch_interrupts()?;
    show(qemu, guest, None, None)
}

/// The same of one that is given what comes from there.
fn show(qemu: &Qemu, guest: &Guest, source: Option<Source>, dumps: Option<dump::Writer>) -> Result<u8> {
    let decoder = Decoder::for_elf(&guest.image.elf)?;
    let (lines, out, played, editor) = match source {
        Some(Source { lines, out, played, editor }) => (Some(lines), out, played, editor),
        None => (None, Box::new(io::stdout()) as Box<dyn Write + Send>, Played::default(), None),
    };
    eprintln!("xtask: QEMU {} ({}); Ctrl-C ends it", qemu.version, qemu.path.display());
    let outlet = Outlet::to(out);
    let mut shown = Shown { decoder, outlet, panic_message: None, dumps, played, lines };
    let run = run_while_heard(&qemu.path, guest, &mut shown)?;
    shown.decode(|decoder, sink| decoder.finish(sink));
    let Shown { outlet, panic_message, dumps, played, .. } = shown;
    // A guest that was ended is not to be outlived by who reads; one that has ended by itself is read to its end, or to
    // Ctrl-C.
    let was_ended = matches!(run.ending, Ending::TimeLimit | Ending::Interrupted);
    let ended = Instant::now();
    let written = outlet.end(|| (was_ended || interrupted()) && ended.elapsed() >= LAST_WORDS);
    // What is said below is said in a terminal as it was.
    drop(editor);
    let is_stuck = written.is_none();
    written.unwrap_or(Ok(())).context("the guest's output cannot be written")?;
    dumps.map_or(Ok(()), dump::Writer::finish)?;
    let is_wanted = match played.finish() {
        Ok(is_wanted) => is_wanted,
        Err(error) => {
            if let Ending::Signal(_) | Ending::TimeLimit | Ending::Status(FAILURE..) = run.ending {
                eprintln!("xtask: {}", run.describe(guest.limit));
            }
            return Err(error);
        }
    };

    let status = match run.ending {
        _ if is_stuck && interrupted() => INTERRUPTED,
        Ending::Status(SUCCESS) if panic_message.is_none() => return Ok(SUCCESS),
        Ending::Unheard if is_wanted && panic_message.is_none() => return Ok(SUCCESS),
        // 2 is kept for wrong usage of this tool.
        Ending::Status(SUCCESS | USAGE) | Ending::Signal(_) | Ending::TimeLimit | Ending::Unheard => FAILURE,
        Ending::Status(status) => status,
        Ending::Interrupted => INTERRUPTED,
    };
    if is_stuck {
        // Standard error may be the same pipe: what is said there must not hold the tool up either.
        thread::spawn(move || {
            thread::sleep(LAST_WORDS);
            process::exit(status.into());
        });
        eprintln!("xtask: nobody reads the output; the rest of it was dropped");
    }
    match panic_message {
        Some(message) => eprintln!("xtask: the kernel panicked: {message}"),
        None => eprintln!("xtask: {}", run.describe(guest.limit)),
    }
    Ok(status)
}
