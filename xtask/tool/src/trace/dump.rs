//! A dump as a file: what a kernel has said of itself in the end, or when it was asked by `dump`, with names to the addresses. It is text, so it can
//! be read as it is; `top --dump` shows it page by page.
//!
//! ```text
//!   Magpie dump 1: hog on virt, 3 cores, build 73cc1396e948efbc
//!   4038fb50 is suspended in ...        where suspended processes and all cores are, or all that was said before the kernel's panic
//!   > stats                             and after the echo of each command what it has printed
//!   ...
//!   Magpie dump ends: 1f2e3d4c          the CRC-32 of all before this line
//! ```
//!
//! One that was cut off or damaged is shown as far as it goes, and that is said.

use crate::failure::usage;
use crate::stream::{Notice, Output, show};
use anyhow::{Context, Result};
use std::collections::VecDeque;
use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

const HEAD: &str = "Magpie dump 1: ";
const TAIL: &str = "Magpie dump ends: ";
/// The command, as the kernel repeats it, and its last line.
const BEGIN: &str = "> dump";
const END: &str = "end of the dump";
/// The watchdog's first line begins so. What follows is of it as long as it looks so: nobody else says anything meanwhile.
const WATCHDOG: &str = "watchdog: core ";

fn is_whereabouts(line: &str) -> bool {
    line.starts_with("core ") || line.starts_with("  ") || line.contains(" is suspended in ")
}
/// Lines that are kept, in case that the kernel panics: sixteen cores with their registers and backtraces take a thousand.
const MOST_LINES: usize = 20_000;

/// Writes a dump whenever there is one; the last stays.
pub struct Writer {
    path: PathBuf,
    head: String,
    lines: VecDeque<String>,
    /// What has arrived of a line.
    part: Vec<u8>,
    written: Result<()>,
    has_written: bool,
    /// There was no such file before.
    is_new: bool,
    /// How many lines the watchdog has said, whose dump has not ended yet.
    of_watchdog: Option<usize>,
}

impl Writer {
    /// For this file, which is opened now: better to fail before the guest runs. What is in it stays until there is a dump.
    pub fn create(path: &Path) -> Result<Self> {
        let is_new = !path.exists();
        OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|error| usage(format!("cannot write {}: {error}", path.display())))?;
        let (lines, part, written) = (VecDeque::new(), Vec::new(), Ok(()));
        let path = path.to_owned();
        Ok(Self {
            path,
            head: HEAD.into(),
            lines,
            part,
            written,
            has_written: false,
            is_new,
            of_watchdog: None,
        })
    }

    /// Takes what was said.
    pub fn take(&mut self, output: &Output) {
        if let Output::Notice(Notice::Boot { build, app, board, cores }) = output {
            let s = if *cores == 1 { "" } else { "s" };
            self.head = format!("{HEAD}{app} on {board}, {cores} core{s}, build {build:016x}");
        }
        if matches!(output, Output::Warning(_)) {
            return;
        }
        // Writing to memory does not fail.
        let _ = show(output, &mut self.part);
        while let Some(end) = self.part.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.part.drain(..=end).collect();
            self.line(String::from_utf8_lossy(&line).trim_end().to_owned());
        }
        if matches!(output, Output::Notice(Notice::Panic(_))) {
            self.write(0);
        }
    }

    fn line(&mut self, line: String) {
        let is_end = line == END;
        match self.of_watchdog {
            Some(lines) if is_whereabouts(&line) => self.of_watchdog = Some(lines + 1),
            _ => {
                self.end_of_watchdog();
                self.of_watchdog = line.starts_with(WATCHDOG).then_some(1);
            }
        }
        self.lines.push_back(line);
        if self.lines.len() > MOST_LINES {
            self.lines.pop_front();
        }
        if is_end && let Some(begin) = self.lines.iter().rposition(|line| line == BEGIN) {
            self.write(begin + 1);
        }
    }

    /// The watchdog's dump is over, if there is one.
    fn end_of_watchdog(&mut self) {
        if let Some(lines) = self.of_watchdog.take() {
            self.write(self.lines.len().saturating_sub(lines));
        }
    }

    fn write(&mut self, from: usize) {
        let lines = std::iter::once(&self.head).chain(self.lines.range(from..));
        let mut text: String = lines.flat_map(|line| [line, "\n"]).collect();
        let checksum = crc32fast::hash(text.as_bytes());
        text += &format!("{TAIL}{checksum:08x}\n");
        self.written =
            fs::write(&self.path, text).with_context(|| format!("cannot write {}", self.path.display()));
        self.has_written = true;
    }

    /// Says whether there is a dump, or why it could not be written.
    pub fn finish(mut self) -> Result<()> {
        self.end_of_watchdog();
        self.written?;
        let path = self.path.display();
        match self.has_written {
            true => eprintln!("xtask: a dump is in {path}: cargo xtask top --dump {path}"),
            false => {
                if self.is_new {
                    // Nothing is left of what was made in the beginning; it may be gone already.
                    let _ = fs::remove_file(&self.path);
                }
                eprintln!(
                    "xtask: there was no dump, neither of a panic nor of the watchdog nor asked for by the command dump"
                );
            }
        }
        Ok(())
    }
}

/// A dump that was read.
#[derive(Debug)]
pub struct Dump {
    /// What it is of.
    pub of: String,
    /// What was said outside of lists: where all are, or all before a panic; statistics, crashes and mailboxes, too.
    pub text: Vec<String>,
    /// Whether it is as it was written.
    pub is_whole: bool,
    /// What each command has printed.
    lists: Vec<(String, Vec<String>)>,
}

/// What has a page of its own, and is not in the text.
const PAGES: [&str; 4] = ["ps", "actors", "tree", "settings"];

impl Dump {
    /// Reads a file. Says on standard error if it is not whole.
    pub fn read(path: &Path) -> Result<Self> {
        let shown = path.display();
        let bytes = fs::read(path).map_err(|error| usage(format!("cannot read {shown}: {error}")))?;
        let text = String::from_utf8_lossy(&bytes);
        let dump = Self::parse(&text).ok_or_else(|| {
            usage(format!(
                "{shown} is no dump: 'cargo xtask qemu --dump FILE' and 'monitor --dump FILE' write one"
            ))
        })?;
        if !dump.is_whole {
            eprintln!("xtask: {shown} was cut off or damaged: what is there is shown");
        }
        Ok(dump)
    }

    fn parse(text: &str) -> Option<Self> {
        let (body, end) = match text.rfind(TAIL) {
            Some(at) => text.split_at(at),
            None => (text, ""),
        };
        let checksum = end.strip_prefix(TAIL).and_then(|end| u32::from_str_radix(end.trim_end(), 16).ok());
        let is_whole = checksum == Some(crc32fast::hash(body.as_bytes()));
        let mut lines = body.lines();
        let of = lines.next()?.strip_prefix(HEAD)?.to_owned();
        let mut dump = Self { of, text: Vec::new(), is_whole, lists: Vec::new() };
        let mut in_list = false;
        for line in lines {
            if let Some(command) = line.strip_prefix("> ") {
                in_list = PAGES.contains(&command);
                if in_list {
                    dump.lists.push((command.into(), Vec::new()));
                    continue;
                }
            }
            match dump.lists.last_mut().filter(|_| in_list) {
                Some((_, list)) => list.push(line.into()),
                None => dump.text.push(line.into()),
            }
        }
        Some(dump)
    }

    /// What that command has printed.
    pub fn list(&self, command: &str) -> &[String] {
        self.lists.iter().find(|(name, _)| name == command).map_or(&[], |(_, lines)| lines)
    }
}

#[cfg(test)]
mod tests {
    use super::{Dump, Writer};
    use crate::stream::{Notice, Output};
    use std::fs;
    use std::path::PathBuf;

    fn path(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("magpie-dump-{name}-{}", std::process::id()))
    }

    fn text(line: &str) -> Output {
        Output::Text(line.into())
    }

    fn boot() -> Output {
        Output::Notice(Notice::Boot { build: 7, app: "hog".into(), board: "virt".into(), cores: 1 })
    }

    #[test]
    fn what_was_asked_for_is_kept() {
        let path = path("asked");
        let mut writer = Writer::create(&path).unwrap();
        writer.take(&boot());
        for line in [
            "hello",
            "> dump",
            "core 0 looks round",
            "> ps",
            " 1 x",
            "> stats",
            "table",
            "end of the dump",
            "more",
        ] {
            writer.take(&text(line));
        }
        writer.finish().unwrap();
        let dump = Dump::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(dump.of, "hog on virt, 1 core, build 0000000000000007");
        assert_eq!(dump.text, ["core 0 looks round", "> stats", "table", "end of the dump"]);
        assert_eq!((dump.list("ps"), dump.list("tree")), (&[" 1 x".to_owned()][..], &[][..]));
    }

    #[test]
    fn a_panic_is_kept_with_what_was_said_before() {
        let path = path("panic");
        let mut writer = Writer::create(&path).unwrap();
        for line in [
            boot(),
            text("hello"),
            text("core 0 panicked"),
            Output::Notice(Notice::Panic("for nothing".into())),
        ] {
            writer.take(&line);
        }
        writer.finish().unwrap();
        let dump = Dump::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(dump.text[1..], ["hello", "core 0 panicked", "*** kernel panic: for nothing"]);
    }

    #[test]
    fn the_watchdog_s_is_kept_although_all_goes_on() {
        let path = path("watchdog");
        let said =
            ["watchdog: core 1 has made no progress for 50 ms", "core 0 was met in x; 0 wait", "  pc 0"];
        for (after, ended) in [(&["hello", "  indented"][..], true), (&[], false)] {
            let mut writer = Writer::create(&path).unwrap();
            ["before", "core 7"].iter().chain(&said).chain(after).for_each(|line| writer.take(&text(line)));
            // What follows ends it, or the run.
            assert_eq!(fs::read_to_string(&path).unwrap().contains("watchdog"), ended);
            writer.finish().unwrap();
            assert_eq!(Dump::read(&path).unwrap().text, said);
            fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn without_a_dump_there_is_no_file_and_anything_else_is_refused() {
        let path = path("none");
        Writer::create(&path).unwrap().finish().unwrap();
        assert!(!path.exists() && Dump::read(&path).is_err());
        for text in ["", "Magpie dump 2: x", "hello\n> ps"] {
            assert!(Dump::parse(text).is_none(), "{text}");
        }
        // What was there before stays where there is no dump.
        fs::write(&path, "kept").unwrap();
        Writer::create(&path).unwrap().finish().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "kept");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn one_that_was_cut_off_or_damaged_is_told_from_a_whole_one() {
        let path = path("damaged");
        let mut writer = Writer::create(&path).unwrap();
        [boot(), text("> dump"), text("core 0"), text("> ps"), text(" 1 x"), text("end of the dump")]
            .iter()
            .for_each(|output| writer.take(output));
        writer.finish().unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert!(Dump::parse(&whole).unwrap().is_whole);
        for end in (0..whole.len() - 1).filter(|end| whole.is_char_boundary(*end)) {
            // Shorter than the first word it is none; the end of the last line is no part of it.
            assert!(Dump::parse(&whole[..end]).is_none_or(|dump| !dump.is_whole), "cut off at {end}");
        }
        for at in 0..whole.len() - 1 {
            let mut damaged = whole.clone().into_bytes();
            damaged[at] ^= 1;
            let damaged = String::from_utf8_lossy(&damaged).into_owned();
            assert!(Dump::parse(&damaged).is_none_or(|dump| !dump.is_whole), "damaged at {at}");
        }
    }
}
