//! Cuts a serial stream into lines of text and log frames.
//!
//! The protocol (docs/architecture.md, "What a kernel prints"): text is bytes as they are, but for zero. A log frame is
//! `00 01 <rzcobs> 00`, and rzcobs output contains no zero byte; a line for the host tool is `00 02 <text> 0a`; events and statistics are
//! `00 03 <COBS> 00`. So every
//! zero byte is a boundary, and one rule is enough:
//!
//! ```text
//!              0x00                    0x01
//!    Text  ------------->  Boundary ----------->  Frame
//!      ^                   |  ^  ^                  |
//!      +---- other byte ---+  |  +------ 0x00 ------+
//!      ^                   |  +-- 0x00 (stays, or comes back)
//!      |                   |  0x02
//!      +------ 0x0a ------ +-------->  Notice
//!                          |   0x03
//!                          +-------->  Binary, which ends as a frame does
//! ```
//!
//! A reader that joins in the middle, or that lost bytes, is in step again at the next zero byte. What came
//! before it is a damaged frame; its bytes are counted as [`Piece::Garbage`] rather than shown, unless they
//! are readable text. A text line that a frame interrupts is put together again. Of a line that is too long to be held back,
//! parts are handed on, with nothing between them; frames inside it come behind it, unless they are too many to be held.
//!
//! This file knows nothing about defmt, the ELF or QEMU, and does no input or output, so a serial monitor
//! can use it as it is.

/// Longest frame accepted, in bytes. A frame that grows beyond it has lost its end.
const MAX_FRAME_BYTES: usize = 16 * 1024;
/// Longest frame of events or statistics, in bytes: as the kernel's.
const MAX_BINARY_BYTES: usize = 251;
/// Most bytes of a text line that are held back. A longer line is handed on in parts as it comes.
const MAX_LINE_BYTES: usize = 64 * 1024;
/// Most bytes of frames, themselves counted in, that are held back because they came in the middle of a line of which parts were handed on.
const MAX_HELD_BYTES: usize = 64 * 1024;

/// One piece of the stream, in the order of arrival.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// A line of text without its end of line; or the last part of one, which may be empty.
    Line(Vec<u8>),
    /// A part of a line that is longer than what is held back. The next is another part, or the rest as [`Piece::Line`].
    Part(Vec<u8>),
    /// A line for the host tool, as it came, without its end of line.
    Notice(Vec<u8>),
    /// What stood between a frame's start and its end: one rzcobs frame if no byte was lost.
    Frame(Vec<u8>),
    /// What stood between the start and the end of a frame of events or statistics.
    Binary(Vec<u8>),
    /// That many bytes that are neither: the rest of a frame whose start was lost.
    Garbage(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Text,
    Boundary,
    Frame,
    Notice,
    Binary,
}

/// The state of one stream.
#[derive(Debug)]
pub struct Splitter {
    state: State,
    /// The line being received; kept while frames pass.
    line: Vec<u8>,
    /// Where in `line` the bytes since the last boundary begin.
    line_since_boundary: usize,
    /// Parts of the line were handed on.
    line_is_open: bool,
    frame: Vec<u8>,
    /// Frames inside a line that is open, and how many bytes they are.
    held: Vec<Vec<u8>>,
    held_bytes: usize,
    notice: Vec<u8>,
    binary: Vec<u8>,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::new()
    }
}

impl Splitter {
    /// A splitter at the start of a stream, or anywhere in it.
    pub fn new() -> Self {
        Self {
            state: State::Text,
            line: Vec::new(),
            line_since_boundary: 0,
            line_is_open: false,
            frame: Vec::new(),
            held: Vec::new(),
            held_bytes: 0,
            notice: Vec::new(),
            binary: Vec::new(),
        }
    }

    /// Takes the next bytes and hands on the pieces they complete.
    pub fn push(&mut self, bytes: &[u8], sink: &mut dyn FnMut(Piece)) {
        for &byte in bytes {
            self.push_byte(byte, sink);
        }
    }

    /// The stream has ended: hands on what is left. An unfinished frame is handed on as a frame, so that
    /// text behind a lost end of frame (a panic, say) can still be found in it.
    pub fn finish(&mut self, sink: &mut dyn FnMut(Piece)) {
        if self.state == State::Frame {
            self.end_frame(sink);
        }
        if !self.binary.is_empty() {
            sink(Piece::Garbage(std::mem::take(&mut self.binary).len()));
        }
        self.broken_notice(sink);
        self.boundary(sink);
        self.end_line_begun(sink);
        *self = Self::new();
    }

    fn push_byte(&mut self, byte: u8, sink: &mut dyn FnMut(Piece)) {
        match (self.state, byte) {
            (State::Text, 0) => {
                self.boundary(sink);
                self.state = State::Boundary;
            }
            (State::Boundary, 0) => {}
            (State::Boundary, 1) => self.state = State::Frame,
            (State::Boundary, 3) => self.state = State::Binary,
            (State::Binary, 0) => {
                sink(Piece::Binary(std::mem::take(&mut self.binary)));
                self.state = State::Boundary;
            }
            (State::Binary, _) => {
                self.binary.push(byte);
                if self.binary.len() > MAX_BINARY_BYTES {
                    // It has lost its end.
                    sink(Piece::Garbage(std::mem::take(&mut self.binary).len()));
                    self.state = State::Text;
                }
            }
            (State::Boundary, 2) => {
                // What was not ended belongs to what was lost before.
                self.end_line_begun(sink);
                self.state = State::Notice;
            }
            (State::Notice, 0) => {
                self.broken_notice(sink);
                self.state = State::Boundary;
            }
            (State::Notice, b'\n') => {
                sink(Piece::Notice(without_return(std::mem::take(&mut self.notice))));
                self.state = State::Text;
            }
            (State::Notice, _) => {
                self.notice.push(byte);
                if self.notice.len() == MAX_LINE_BYTES {
                    self.broken_notice(sink);
                    self.state = State::Text;
                }
            }
            (State::Text | State::Boundary, _) => {
                self.state = State::Text;
                self.push_text(byte, sink);
            }
            (State::Frame, 0) => {
                self.end_frame(sink);
                self.state = State::Boundary;
            }
            (State::Frame, _) => {
                self.frame.push(byte);
                if self.frame.len() == MAX_FRAME_BYTES {
                    self.end_frame(sink);
                    self.state = State::Text;
                }
            }
        }
    }

    fn push_text(&mut self, byte: u8, sink: &mut dyn FnMut(Piece)) {
        if byte == b'\n' {
            self.end_line(sink);
        } else {
            self.line.push(byte);
            if self.line.len() == MAX_LINE_BYTES {
                self.hand_on_part(sink);
            }
        }
    }

    /// Hands on what there is of the line, but for what its next byte may still change.
    fn hand_on_part(&mut self, sink: &mut dyn FnMut(Piece)) {
        let rest = self.line.split_off(self.line.len() - unfinished(&self.line));
        sink(Piece::Part(std::mem::replace(&mut self.line, rest)));
        self.line_since_boundary = 0;
        self.line_is_open = true;
    }

    fn end_line(&mut self, sink: &mut dyn FnMut(Piece)) {
        self.line_since_boundary = 0;
        self.line_is_open = false;
        sink(Piece::Line(without_return(std::mem::take(&mut self.line))));
        self.held_bytes = 0;
        self.held.drain(..).for_each(|frame| sink(Piece::Frame(frame)));
    }

    /// Ends the line if anything of it has come.
    fn end_line_begun(&mut self, sink: &mut dyn FnMut(Piece)) {
        if self.line_is_open || !self.line.is_empty() {
            self.end_line(sink);
        }
    }

    fn end_frame(&mut self, sink: &mut dyn FnMut(Piece)) {
        let frame = std::mem::take(&mut self.frame);
        if frame.is_empty() {
            return;
        }
        if !self.line_is_open {
            sink(Piece::Frame(frame));
            return;
        }
        self.held_bytes += frame.len() + size_of_val(&frame);
        self.held.push(frame);
        if self.held_bytes >= MAX_HELD_BYTES {
            self.end_line(sink);
        }
    }

    /// A line for the host tool that lacks its end: what there is of it is shown.
    fn broken_notice(&mut self, sink: &mut dyn FnMut(Piece)) {
        let notice = std::mem::take(&mut self.notice);
        if is_readable(&notice) && !notice.is_empty() {
            sink(Piece::Line(without_return(notice)));
        } else if !notice.is_empty() {
            sink(Piece::Garbage(notice.len()));
        }
    }

    /// A zero byte ends the text: unreadable text was the rest of a frame.
    fn boundary(&mut self, sink: &mut dyn FnMut(Piece)) {
        let since = &self.line[self.line_since_boundary..];
        if !is_readable(since) {
            sink(Piece::Garbage(since.len()));
            self.line.truncate(self.line_since_boundary);
        }
        self.line_since_boundary = self.line.len();
    }
}

/// How many bytes at the end of a part belong together with what comes next: a character that is not whole, and a carriage
/// return, which may be before the line's end.
fn unfinished(text: &[u8]) -> usize {
    if text.last() == Some(&b'\r') {
        return 1;
    }
    let tail = &text[text.len().saturating_sub(4)..];
    let start = tail.iter().rposition(|byte| byte & 0xc0 != 0x80).unwrap_or(tail.len());
    match std::str::from_utf8(&tail[start..]) {
        // Without a length of error it is the end that is missing.
        Err(error) if error.error_len().is_none() => tail.len() - start,
        _ => 0,
    }
}

fn without_return(mut line: Vec<u8>) -> Vec<u8> {
    if line.last() == Some(&b'\r') {
        line.pop();
    }
    line
}

/// Whether the bytes are text that a terminal can show: UTF-8 without control characters other than tab,
/// carriage return and escape.
pub fn is_readable(bytes: &[u8]) -> bool {
    std::str::from_utf8(bytes)
        .is_ok_and(|text| text.chars().all(|c| !c.is_control() || matches!(c, '\t' | '\r' | '\x1b')))
}

/// The whole readable lines inside a damaged frame. When a frame's end is lost, the text behind it looks
/// like a part of the frame; what a kernel said last must not be lost with it.
pub fn salvage(frame: &[u8]) -> Vec<String> {
    /// Shorter runs are as likely to be a frame's own bytes.
    const SHORTEST_BYTES: usize = 6;
    let mut lines = Vec::new();
    for (index, line) in frame.split(|&byte| byte == b'\n').enumerate() {
        // The first line begins with the frame's own bytes: take its longest readable end.
        let start = if index == 0 {
            line.iter()
                .rposition(|&b| !(b' '..=b'~').contains(&b) && b != b'\t' && b != b'\r')
                .map_or(0, |at| at + 1)
        } else {
            0
        };
        let text = &line[start..];
        if text.len() >= SHORTEST_BYTES && is_readable(text) {
            lines.push(String::from_utf8_lossy(text).trim_end().to_owned());
        }
    }
    lines
}

#[cfg(test)]
#[path = "split_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "split_fuzz.rs"]
mod fuzz;
