//! A terminal of 80 columns and 24 rows for this tool: what a user would press, and what appears.

use anyhow::{Context, Result, bail};
use nix::pty::{Winsize, openpty};
use nix::sys::termios::{Termios, tcgetattr};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::{Child, Command};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

/// The editor asks the terminal for pasted text in brackets when it begins with a line, and no more when that has ended.
const LINE_BEGINS: &str = "\x1b[?2004h";
const LINE_ENDS: &str = "\x1b[?2004l";

/// How long something may take to appear.
const PATIENCE: Duration = Duration::from_secs(120);

/// A program in a terminal. It ends with this.
pub struct Terminal {
    child: Child,
    keys: File,
    held: OwnedFd,
    before: Termios,
    shown: Receiver<Vec<u8>>,
    text: String,
    /// What was expected ends here.
    at: usize,
}

impl Terminal {
    /// Starts it.
    pub fn start(mut command: Command) -> Result<Self> {
        let size = Winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        let ends = openpty(&size, None).context("cannot make a pseudo-terminal")?;
        // Copies, for these are closed in programs that are started.
        let master = File::from(ends.master.try_clone().context("cannot copy the terminal")?);
        let slave = || ends.slave.try_clone().context("cannot copy the terminal");
        let before = tcgetattr(&ends.slave).context("cannot read the terminal's settings")?;
        command.stdin(slave()?).stdout(slave()?).stderr(slave()?);
        let child = command.spawn().context("this tool cannot start itself")?;
        let held = slave()?;
        let mut reader = master.try_clone().context("cannot copy the terminal")?;
        let (sender, shown) = mpsc::channel();
        // It ends with the terminal.
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count) = reader.read(&mut buffer) {
                if count == 0 || sender.send(buffer[..count].to_vec()).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, keys: master, held, before, shown, text: String::new(), at: 0 })
    }

    /// Presses keys.
    pub fn press(&mut self, keys: &str) -> Result<()> {
        self.keys.write_all(keys.as_bytes()).context("nobody reads the keys")
    }

    /// Waits until this appears, after what was expected before.
    pub fn expect(&mut self, text: &str) -> Result<()> {
        self.wait(text, |text_so_far, at| text_so_far[at..].find(text).map(|found| at + found + text.len()))
    }

    /// Waits until so many lines were begun to be edited in all.
    pub fn expect_lines(&mut self, count: usize) -> Result<()> {
        self.wait(LINE_BEGINS, |text, at| (text.matches(LINE_BEGINS).count() >= count).then_some(at))
    }

    /// Waits until a line is being edited.
    pub fn expect_line(&mut self) -> Result<()> {
        self.wait(LINE_BEGINS, |text, at| {
            (text.matches(LINE_BEGINS).count() > text.matches(LINE_ENDS).count()).then_some(at)
        })
    }

    fn wait(&mut self, text: &str, find: impl Fn(&str, usize) -> Option<usize>) -> Result<()> {
        let end = Instant::now() + PATIENCE;
        loop {
            if let Some(at) = find(&self.text, self.at) {
                self.at = at;
                return Ok(());
            }
            match self.shown.recv_timeout(end.saturating_duration_since(Instant::now())) {
                Ok(bytes) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                Err(_) => bail!("'{text}' does not appear\n{:?}", self.text),
            }
        }
    }

    /// Whether this has appeared, with what has come until now.
    pub fn shows(&mut self, text: &str) -> bool {
        self.shown.try_iter().for_each(|bytes| self.text.push_str(&String::from_utf8_lossy(&bytes)));
        self.text.contains(text)
    }

    /// All that has appeared.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Waits for its end.
    pub fn end(&mut self) -> Result<Option<i32>> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().context("it cannot be waited for")? {
                return Ok(status.code());
            }
            thread::sleep(Duration::from_millis(20));
        }
        self.shows("");
        bail!("it does not end\n{:?}", self.text)
    }

    /// Whether the terminal's settings are those from before.
    pub fn is_as_it_was(&self) -> Result<bool> {
        let after = tcgetattr(&self.held).context("cannot read the terminal's settings")?;
        Ok(after == self.before)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
