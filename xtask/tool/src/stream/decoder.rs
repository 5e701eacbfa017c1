//! Splitter, log decoder and notices put together: bytes in, [`Output`] out, in order.
//!
//! Also checks that the image that runs is the one whose ELF decodes its log: a wrong ELF decodes wrongly
//! without any other sign.

use super::build_id::build_of;
use super::log::LogDecoder;
use super::notice::Notice;
use super::split::{Piece, Splitter, salvage};
use super::symbols::Symbols;
use crate::trace::{Record, read};
use anyhow::{Context, Result};
use std::path::Path;

/// One thing a kernel said, or one thing to say about its stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Output {
    /// A line of text, as it came; or what was left of one.
    Text(Vec<u8>),
    /// A part of a long line of text: it goes on in what is next.
    Part(Vec<u8>),
    /// A decoded log line.
    Log(String),
    /// A line for the host tool.
    Notice(Notice),
    /// Events or statistics, with the number of their frame, and the frame as it came.
    Record(u64, Record, Vec<u8>),
    /// Something about the stream that the user should know.
    Warning(String),
}

/// The lines for the host tool in a whole stream, without an ELF.
pub fn notices(bytes: &[u8]) -> Vec<Notice> {
    let mut notices = Vec::new();
    let mut take = |piece| match piece {
        Piece::Notice(line) => notices.extend(Notice::parse(&line)),
        Piece::Line(_) | Piece::Part(_) | Piece::Frame(_) | Piece::Binary(_) | Piece::Garbage(_) => {}
    };
    let mut splitter = Splitter::new();
    splitter.push(bytes, &mut take);
    splitter.finish(&mut take);
    notices
}

/// Decodes one stream.
pub struct Decoder {
    splitter: Splitter,
    log: Option<LogDecoder>,
    build: Option<u64>,
    symbols: Symbols,
    damaged_frames: u64,
    garbage_bytes: u64,
    said_no_strings: bool,
    /// A part of a line was handed on, and its end was not.
    line_is_open: bool,
}

impl Decoder {
    /// A decoder for what the image built as this ELF prints.
    pub fn for_elf(path: &Path) -> Result<Self> {
        let elf = std::fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
        Self::new(&elf).with_context(|| format!("cannot use {}", path.display()))
    }

    fn new(elf: &[u8]) -> Result<Self> {
        Ok(Self {
            splitter: Splitter::new(),
            log: LogDecoder::from_elf(elf)?,
            build: build_of(elf)?,
            symbols: Symbols::from_elf(elf),
            damaged_frames: 0,
            garbage_bytes: 0,
            said_no_strings: false,
            line_is_open: false,
        })
    }

    /// Takes the next bytes and hands on what they complete.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Output)) {
        let mut pieces = Vec::new();
        self.splitter.push(bytes, &mut |piece| pieces.push(piece));
        pieces.into_iter().for_each(|piece| self.piece(piece, sink));
    }

    /// The stream has ended: hands on the rest, and says what was damaged.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Output)) {
        let mut pieces = Vec::new();
        self.splitter.finish(&mut |piece| pieces.push(piece));
        pieces.into_iter().for_each(|piece| self.piece(piece, sink));
        let (frames, bytes) = (self.damaged_frames, self.garbage_bytes);
        if frames > 0 || bytes > 0 {
            sink(Output::Warning(format!(
                "{frames} frames could not be decoded and {bytes} bytes belonged to none"
            )));
        }
    }

    fn piece(&mut self, piece: Piece, sink: &mut dyn FnMut(Output)) {
        match piece {
            // The rest of a line is no line that says anything by itself.
            Piece::Line(rest) if self.line_is_open => {
                self.line_is_open = false;
                sink(Output::Text(rest));
            }
            Piece::Line(line) => self.text(line, sink),
            Piece::Part(part) => {
                self.line_is_open = true;
                sink(Output::Part(part));
            }
            Piece::Notice(line) => match Notice::parse(&line) {
                Some(notice) => self.notice(notice, sink),
                // Damaged, or newer than this tool.
                None => self.text(line, sink),
            },
            Piece::Frame(frame) => self.frame(&frame, sink),
            Piece::Binary(frame) => match read(&frame) {
                Some((sequence, record)) => sink(Output::Record(sequence, record, frame)),
                None => self.damaged_frames += 1,
            },
            Piece::Garbage(bytes) => self.garbage_bytes += bytes as u64,
        }
    }

    fn text(&mut self, line: Vec<u8>, sink: &mut dyn FnMut(Output)) {
        let explained = self.symbols.explain(&line);
        let dropped = self.log.as_ref().and_then(|log| log.explain(&line));
        sink(Output::Text(line));
        explained.into_iter().chain(dropped).for_each(|said| sink(Output::Text(said.into_bytes())));
    }

    fn notice(&mut self, notice: Notice, sink: &mut dyn FnMut(Output)) {
        let other_build = match (&notice, self.build) {
            (Notice::Boot { build, .. }, Some(expected)) if *build != expected => Some((*build, expected)),
            _ => None,
        };
        sink(Output::Notice(notice));
        if let Some((running, expected)) = other_build {
            sink(Output::Warning(format!(
                "the running image is build {running:016x}, the ELF is build {expected:016x}: its log lines \
                 below are wrong; give the ELF that the image was made from"
            )));
        }
    }

    fn frame(&mut self, frame: &[u8], sink: &mut dyn FnMut(Output)) {
        let Some(log) = &self.log else {
            if !self.said_no_strings {
                self.said_no_strings = true;
                sink(Output::Warning("the ELF has no log strings, so log frames are not shown".into()));
            }
            return;
        };
        match log.decode(frame) {
            Some(line) => sink(Output::Log(line)),
            None => {
                self.damaged_frames += 1;
                for line in salvage(frame) {
                    self.text(line.into_bytes(), sink);
                }
            }
        }
    }
}

#[cfg(test)]
#[path = "decoder_fuzz.rs"]
mod fuzz;
