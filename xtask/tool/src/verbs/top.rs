//! `cargo xtask top`: watches what each core does, in the terminal: an application on QEMU, a board at a serial port, or what was recorded before.
//!
//! One thread listens and hands frames on; this one draws and reads keys.

use super::qemu;
use crate::failure::{INTERRUPTED, SUCCESS, usage};
use crate::machine::{catch_interrupts, interrupted};
use crate::serial::port;
use crate::serial::watch::{WhenGone, watch};
use crate::stream::{Decoder, Output};
use crate::trace::dump::Dump;
use crate::trace::pages::{Act, Key, Pages};
use crate::trace::{Record, tape};
use anyhow::{Context, Result, anyhow};
use clap::Args;
use ratatui::DefaultTerminal;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use ratatui::style::Stylize;
use ratatui::text::{Line, Text};
use std::fs;
use std::io::{self, IsTerminal, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

/// What `cargo xtask top` accepts.
#[derive(Args)]
#[group(id = "top")]
pub struct Options {
    /// Listen to a board at this serial port, whose image takes commands; needs --elf
    #[arg(long, value_name = "PORT", requires = "elf")]
    port: Option<String>,
    /// Bits in a second
    #[arg(long, default_value_t = 115_200)]
    baud: u32,
    /// The ELF of the image that runs on the board
    #[arg(long, value_name = "FILE")]
    elf: Option<PathBuf>,
    /// Write what is shown to a file, too
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Show what was recorded, as fast as it was
    #[arg(long, value_name = "FILE", conflicts_with_all = ["port", "record"])]
    replay: Option<PathBuf>,
    /// Show a dump: what 'qemu --dump' or 'monitor --dump' has written
    #[arg(long, value_name = "FILE", conflicts_with_all = ["port", "record", "replay"])]
    dump: Option<PathBuf>,
    #[command(flatten)]
    qemu: qemu::Options,
}

/// How often what is shown is drawn anew, and keys are looked for.
const GLANCE: Duration = Duration::from_millis(100);
/// How much of what was said is taken in before it is drawn, and keys are looked for.
const AT_ONCE: usize = 10_000;
/// How often the page that is seen is asked for.
const ASK: Duration = Duration::from_millis(500);
/// After so long without a line an answer is whole.
const QUIET: Duration = Duration::from_millis(150);
/// Of a narrower terminal's lines the ends are cut off, which is said.
const ENOUGH_COLUMNS: u16 = 80;
const TOO_NARROW: &str = "(80 columns show all) ";
/// What the kernel is asked for.
const WORDS: &str = "trace series=0.25";
const COMMANDS: &str = "series 0.25\ntrace start\n";
/// If no statistics come for so long it is asked once more: a board that has begun meanwhile, or was not listening yet, knows of nothing.
const ASK_AGAIN: Duration = Duration::from_secs(3);

/// What the thread that listens hands on.
enum Said {
    Record(u64, Record, Vec<u8>),
    Text(String),
    /// It has ended, with this status.
    Over(Result<u8>),
}

/// Listens, hands on what it hears, and returns the status when it has come to an end.
type Source = Box<dyn FnOnce(&Sender<Said>) -> Result<u8> + Send>;

/// Runs the verb.
pub fn execute(options: Options) -> Result<u8> {
    if let Some(path) = &options.dump {
        return show_dump(path);
    }
    if !io::stdout().is_terminal() {
        return Err(usage(
            "top needs a terminal; numbers for a pipe or a file are printed by: cargo xtask stats --every 1",
        ));
    }
    let (sender, receiver) = mpsc::channel();
    let stop = Arc::new(AtomicBool::new(false));
    let mut recorder = options.record.as_deref().map(tape::Writer::create).transpose()?;
    let is_over = stop.clone();
    let (typist, typed) = mpsc::channel();
    let can_ask = options.replay.is_none();
    let is_built = can_ask && options.port.is_none();
    let source: Source = if let Some(path) = options.replay {
        let frames = tape::frames(&path)?;
        Box::new(move |sender| replay(frames, sender, &is_over))
    } else if let (Some(name), Some(elf)) = (options.port, options.elf) {
        let decoder = Decoder::for_elf(&elf)?;
        Box::new(move |sender| listen(&name, options.baud, decoder, &typed, sender, &is_over))
    } else {
        let qemu = options.qemu;
        Box::new(move |sender| {
            qemu::hear_and_tell(qemu, WORDS, typed, &mut |output| {
                hand_on(output, sender);
                if is_over.load(Ordering::Relaxed) {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            })
        })
    };
    let listener = thread::spawn(move || {
        let status = source(&sender);
        // Nobody may be left to hear it.
        let _ = sender.send(Said::Over(status));
    });
    // What is built is said before the terminal is taken over. A board may have nothing to say.
    let first = if is_built {
        receiver.recv().map_err(RecvTimeoutError::from)
    } else {
        receiver.recv_timeout(ASK_AGAIN)
    };
    if matches!(first, Err(RecvTimeoutError::Disconnected)) {
        return Err(anyhow!("the thread that listens is gone"));
    }
    let mut terminal = ratatui::init();
    thread::spawn(leave_when_told);
    let pages = Pages::new(can_ask);
    let shown = show(&mut terminal, pages, first.ok(), &receiver, can_ask.then_some(&typist), &mut recorder);
    ratatui::restore();
    recorder.map_or(Ok(()), tape::Writer::finish)?;
    // Relaxed: a flag on its own.
    stop.store(true, Ordering::Relaxed);
    let status = shown?;
    if status.is_none() {
        // It ends with what it hears next.
        let _ = listener.join();
    }
    Ok(status.unwrap_or(SUCCESS))
}

/// Shows what is in a file, or prints it where there is no terminal.
fn show_dump(path: &Path) -> Result<u8> {
    let dump = Dump::read(path)?;
    if !io::stdout().is_terminal() {
        io::stdout().write_all(&fs::read(path)?)?;
        return Ok(SUCCESS);
    }
    let mut terminal = ratatui::init();
    catch_interrupts()?;
    thread::spawn(leave_when_told);
    // Nothing more is said.
    let (_, silent) = mpsc::channel();
    let shown = show(&mut terminal, Pages::of_dump(dump), None, &silent, None, &mut None);
    ratatui::restore();
    Ok(shown?.unwrap_or(SUCCESS))
}

fn hand_on(output: Output, sender: &Sender<Said>) {
    let said = match output {
        Output::Record(sequence, record, frame) => Said::Record(sequence, record, frame),
        Output::Text(text) => Said::Text(String::from_utf8_lossy(&text).into_owned()),
        Output::Log(text) | Output::Warning(text) => Said::Text(text),
        Output::Part(_) | Output::Notice(_) => return,
    };
    // Nobody may be left to hear it.
    let _ = sender.send(said);
}

/// Ends the tool when it is told to, by a signal, and does not by itself: where the terminal is gone, as with its window, the library that reads keys goes
/// round for ever. QEMU ends with the tool.
fn leave_when_told() {
    const BY_ITSELF: Duration = Duration::from_secs(1);
    while !interrupted() {
        thread::sleep(GLANCE);
    }
    thread::sleep(BY_ITSELF);
    ratatui::restore();
    std::process::exit(INTERRUPTED.into());
}

/// Draws until a key ends it (then nothing comes back) or the source has ended and a key was pressed: with its status.
fn show(
    terminal: &mut DefaultTerminal,
    mut pages: Pages,
    mut next: Option<Said>,
    receiver: &Receiver<Said>,
    typist: Option<&Sender<Vec<u8>>>,
    recorder: &mut Option<tape::Writer>,
) -> Result<Option<u8>> {
    let mut status = None;
    let (mut asked, mut heard, mut counted) = (None::<Instant>, Instant::now(), Instant::now());
    let tell = |line: &str| {
        if let Some(typist) = typist {
            // Nobody may be left to take it.
            let _ = typist.send(format!("{line}\n").into_bytes());
        }
    };
    loop {
        // No more than that: whoever speaks without end hides no key.
        let mut taken = 0;
        while taken < AT_ONCE
            && let Some(said) = next.take().or_else(|| receiver.try_recv().ok())
        {
            taken += 1;
            match said {
                Said::Record(sequence, record, frame) => {
                    if matches!(record, Record::Values(..)) {
                        counted = Instant::now();
                    }
                    if let Some(recorder) = recorder {
                        recorder.take(&frame)?;
                    }
                    pages.view.take(sequence, record);
                }
                Said::Text(text) => {
                    heard = Instant::now();
                    pages.hear(&text);
                }
                Said::Over(ended) => {
                    status = Some(ended?);
                    pages.quiet();
                    pages.view.said = "it has ended: q quits".into();
                }
            }
        }
        if heard.elapsed() >= QUIET {
            pages.quiet();
        }
        if status.is_none() && counted.elapsed() >= ASK_AGAIN {
            counted = Instant::now();
            COMMANDS.lines().for_each(tell);
        }
        if let Some(question) = pages.question()
            && asked.is_none_or(|asked| asked.elapsed() >= ASK)
        {
            asked = Some(Instant::now());
            tell(question);
        }
        terminal.draw(|frame| {
            let area = frame.area();
            let (mut lines, chosen) = pages.lines(area.width.into(), area.height.into());
            if let Some(title) = lines.first_mut()
                && area.width < ENOUGH_COLUMNS
            {
                title.insert_str(0, TOO_NARROW);
            }
            let line = |(index, line): (usize, String)| {
                if chosen == Some(index) { Line::from(line).reversed() } else { Line::from(line) }
            };
            frame.render_widget(Text::from_iter(lines.into_iter().enumerate().map(line)), area);
        })?;
        if interrupted() {
            return Ok(Some(INTERRUPTED));
        }
        // Whoever is behind looks only whether a key waits already.
        let wait = if taken == AT_ONCE { Duration::ZERO } else { GLANCE };
        if event::poll(wait)?
            && let Event::Key(key) = event::read()?
            && key.kind == KeyEventKind::Press
        {
            let key = match key.code {
                KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Ok(status),
                KeyCode::Char(char) => Key::Char(char),
                KeyCode::Up => Key::Up,
                KeyCode::Down => Key::Down,
                KeyCode::Enter => Key::Enter,
                KeyCode::Esc => Key::Escape,
                KeyCode::Backspace => Key::Backspace,
                _ => continue,
            };
            // Another page is asked for at once.
            asked = None;
            match pages.press(key) {
                Act::Draw => {}
                Act::Send(line) => tell(&line),
                Act::Quit => return Ok(status),
            }
        }
    }
}

/// Listens to a board until it is told to stop.
fn listen(
    name: &str,
    baud: u32,
    mut decoder: Decoder,
    lines: &Receiver<Vec<u8>>,
    sender: &Sender<Said>,
    is_over: &AtomicBool,
) -> Result<u8> {
    let mut port = port::open_now(name, baud)?;
    port.write_all(COMMANDS.as_bytes()).context("the port takes nothing")?;
    watch(
        port,
        lines,
        WhenGone::Wait,
        || port::open(name, baud),
        |bytes| decoder.push(bytes, &mut |output| hand_on(output, sender)),
        |_| {},
        || is_over.load(Ordering::Relaxed),
    );
    Ok(SUCCESS)
}

/// Hands on what was recorded, as fast as it was.
fn replay(
    frames: impl Iterator<Item = Result<(Duration, u64, Record)>>,
    sender: &Sender<Said>,
    is_over: &AtomicBool,
) -> Result<u8> {
    let began = Instant::now();
    for frame in frames {
        let (at, sequence, record) = frame?;
        while began.elapsed() < at && !is_over.load(Ordering::Relaxed) {
            thread::sleep(at.saturating_sub(began.elapsed()).min(GLANCE));
        }
        if is_over.load(Ordering::Relaxed) || sender.send(Said::Record(sequence, record, Vec::new())).is_err()
        {
            break;
        }
    }
    Ok(SUCCESS)
}
