//! Commands typed at a terminal: a line can be edited, completed (Tab), and had again (arrows, also those of earlier sessions). What the kernel
//! says meanwhile appears above it.
//!
//! A thread reads keys. The terminal is in raw mode for so long, and whoever ends this tool may do so while the thread waits for a
//! key: so what the terminal was like is put back by [`Editor`]'s end.

use super::names::Names;
use super::words;
use crate::machine::interrupt;
use anyhow::{Context as _, Result};
use nix::sys::termios::{SetArg, Termios, tcgetattr, tcsetattr};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, ExternalPrinter, Helper};
use std::env;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Lines that are kept for later sessions.
const KEPT: usize = 1_000;

/// Whether there is a terminal that lines can be edited in.
pub fn is_possible() -> bool {
    let is_dumb = env::var("TERM").is_ok_and(|term| term == "dumb");
    io::stdin().is_terminal() && io::stdout().is_terminal() && !is_dumb
}

/// A terminal that lines are edited in until the end of this.
pub struct Editor {
    before: Termios,
}

impl Editor {
    /// Begins to read keys. Lines come out of the receiver, with their ends; what is to be shown goes to the writer.
    pub fn begin() -> Result<(Self, Receiver<Vec<u8>>, impl Write + Send + use<>)> {
        let before = tcgetattr(io::stdin()).context("the terminal's settings cannot be read")?;
        let config = Config::builder()
            .completion_type(CompletionType::List)
            .max_history_size(KEPT)
            .and_then(|config| config.history_ignore_dups(true))
            .context("the history cannot be kept")?
            .auto_add_history(true)
            .build();
        let mut editor = rustyline::Editor::<Words, FileHistory>::with_config(config)
            .context("lines cannot be edited in this terminal")?;
        let names = Names::default();
        editor.set_helper(Some(Words(names.clone())));
        let printer = editor.create_external_printer().context("lines cannot be edited in this terminal")?;
        let history = history();
        if let Some(path) = &history {
            // The first time there is none.
            let _ = editor.load_history(path);
        }
        let (sender, lines) = mpsc::sync_channel(16);
        thread::spawn(move || {
            loop {
                match editor.readline("") {
                    Ok(line) => {
                        if sender.send(format!("{line}\n").into_bytes()).is_err() {
                            return;
                        }
                        if let Some(path) = &history {
                            // A history that cannot be kept is no reason to end.
                            let _ = editor.append_history(path);
                        }
                    }
                    Err(ReadlineError::Interrupted) => return interrupt(),
                    // The end of what is typed: the kernel goes on.
                    Err(_) => return,
                }
            }
        });
        Ok((Self { before }, lines, Above { printer, line: Vec::new(), names }))
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        // The terminal may be gone.
        let _ = tcsetattr(io::stdin(), SetArg::TCSADRAIN, &self.before);
    }
}

/// Where lines are kept, if there is a place for such things.
fn history() -> Option<PathBuf> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let folder =
        state.or_else(|| Some(PathBuf::from(env::var_os("HOME")?).join(".local/state")))?.join("magpie");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("commands"))
}

/// Shows what is written to it above the line that is being edited, whole lines at a time.
struct Above<P> {
    printer: P,
    line: Vec<u8>,
    names: Names,
}

impl<P: ExternalPrinter> Write for Above<P> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.line.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let Some(end) = self.line.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.line.split_off(end + 1);
        let lines = std::mem::replace(&mut self.line, rest);
        let lines = String::from_utf8_lossy(&lines).into_owned();
        self.names.read(&lines);
        self.printer.print(lines).map_err(io::Error::other)
    }
}

/// Completes the kernel's commands, and the names that it has said.
struct Words(Names);

impl Completer for Words {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (begin, words) = words::completions(&line[..at], &self.0);
        let pair = |word: String| Pair { replacement: format!("{word} "), display: word };
        Ok((begin, words.into_iter().map(pair).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}
impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}
