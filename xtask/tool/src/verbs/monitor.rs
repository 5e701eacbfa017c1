//! `cargo xtask monitor`: shows what a board says over its serial port, decoded as for QEMU, and sends it what is typed.

use crate::failure::{FAILURE, INTERRUPTED, SUCCESS, usage};
use crate::machine::{catch_interrupts, interrupted};
use crate::serial::port::{self, Port};
use crate::serial::script::Script;
use crate::serial::source::Source;
use crate::serial::watch::{Event, WhenGone, watch};
use crate::stream::{Decoder, Notice, Output, show};
use crate::trace::dump;
use anyhow::{Context, Result};
use clap::Args;
use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};

/// The line to a board.
#[derive(Args)]
pub struct Line {
    /// The serial port, like /dev/ttyUSB0; unix:PATH is an emulator's socket
    #[arg(long, value_name = "PORT")]
    pub port: String,
    /// Bits in a second
    #[arg(long, default_value_t = 115_200)]
    pub baud: u32,
    /// End when the port vanishes, in place of waiting for it
    #[arg(long)]
    pub once: bool,
}

/// What `cargo xtask monitor` accepts.
#[derive(Args)]
pub struct Options {
    #[command(flatten)]
    line: Line,
    /// The ELF of the image that runs on the board
    #[arg(long)]
    elf: PathBuf,
    /// Send the commands of this file, in place of what is typed: docs/host-tool.md says what else may be in it
    #[arg(long, value_name = "FILE")]
    script: Option<PathBuf>,
    /// Keep the last dump in this file: of a panic of the kernel, or asked for by the command dump
    #[arg(long, value_name = "FILE")]
    dump: Option<PathBuf>,
}

/// Runs the verb.
pub fn execute(options: &Options) -> Result<u8> {
    if !options.elf.is_file() {
        return Err(usage(format!(
            "there is no ELF {}; give the one the image was made from",
            options.elf.display()
        )));
    }
    let script = options.script.as_deref().map(Script::read).transpose()?;
    let dumps = options.dump.as_deref().map(dump::Writer::create).transpose()?;
    catch_interrupts()?;
    let port = port::open_now(&options.line.port, options.line.baud)?;
    eprintln!("xtask: listening to {}; Ctrl-C ends it", options.line.port);
    follow(port, Vec::new(), &options.line, &options.elf, script, dumps)
}

/// Shows what comes from an open port, and sends what is typed, until Ctrl-C, or until it vanishes if that is wanted, or
/// nobody reads the output any more. `heard` was read from it already. A kernel that has panicked makes that a failure.
pub fn follow(
    port: Box<dyn Port>,
    heard: Vec<u8>,
    line: &Line,
    elf: &Path,
    script: Option<Script>,
    mut dumps: Option<dump::Writer>,
) -> Result<u8> {
    let mut decoder = Decoder::for_elf(elf)?;
    // The kernel may have run for long.
    let Source { lines, mut out, played, editor } = Source::of_commands(script, false)?;
    let played = RefCell::new(played);
    let mut written = Ok(());
    let (mut panicked, unheard) = (false, Cell::new(false));
    let mut sink = |output: Output| {
        panicked |= matches!(output, Output::Notice(Notice::Panic(_)));
        played.borrow().hear(&output);
        dumps.iter_mut().for_each(|dumps| dumps.take(&output));
        if written.is_ok() {
            written = show(&output, &mut out);
            unheard.set(written.is_err());
        }
    };
    decoder.push(&heard, &mut sink);
    let on_event = |event| match event {
        Event::Gone => eprintln!("xtask: {} is gone", line.port),
        Event::Back => eprintln!("xtask: {} is back", line.port),
    };
    let when_gone = if line.once { WhenGone::End } else { WhenGone::Wait };
    let reopen = || port::open(&line.port, line.baud);
    watch(
        port,
        &lines,
        when_gone,
        reopen,
        |bytes| decoder.push(bytes, &mut sink),
        on_event,
        || interrupted() || unheard.get() || played.borrow_mut().is_over(),
    );
    decoder.finish(&mut sink);
    drop(editor);
    let is_wanted = played.into_inner().finish()?;
    written.context("cannot write the output")?;
    dumps.map_or(Ok(()), dump::Writer::finish)?;
    Ok(match (panicked, interrupted()) {
        (true, _) => FAILURE,
        (false, true) if !is_wanted => INTERRUPTED,
        (false, _) => SUCCESS,
    })
}
