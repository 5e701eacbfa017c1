//! Assembles lines from the bytes of a serial port. What arrives may be anything: noise, a file, half a line.

/// The longest line that is understood, in bytes.
pub(super) const MOST_BYTES: usize = 128;

/// What a byte has completed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Completed<'a> {
    /// A line that is not empty.
    Line(&'a str),
    /// A line that was longer than [`MOST_BYTES`]; it is discarded.
    TooLong,
    /// A line that is not text.
    NotText,
}

/// A line that is being received.
pub(super) struct Line {
    bytes: [u8; MOST_BYTES],
    length: usize,
    is_too_long: bool,
}

impl Line {
    pub(super) const fn new() -> Self {
        Self { bytes: [0; MOST_BYTES], length: 0, is_too_long: false }
    }

    /// Takes a byte. A line ends with CR, LF or both; backspace and delete take back a byte.
    pub(super) fn push(&mut self, byte: u8) -> Option<Completed<'_>> {
        const BACKSPACE: u8 = 8;
        const DELETE: u8 = 127;
        match byte {
            b'\r' | b'\n' => return self.complete(),
            BACKSPACE | DELETE => self.length = self.length.saturating_sub(1),
            _ if self.length == MOST_BYTES => self.is_too_long = true,
            byte => {
                self.bytes[self.length] = byte;
                self.length += 1;
            }
        }
        None
    }

    fn complete(&mut self) -> Option<Completed<'_>> {
        let length = core::mem::take(&mut self.length);
        if core::mem::take(&mut self.is_too_long) {
            return Some(Completed::TooLong);
        }
        match core::str::from_utf8(&self.bytes[..length]) {
            Err(_) => Some(Completed::NotText),
            // Also the empty line between CR and LF.
            Ok(line) if line.trim_ascii().is_empty() => None,
            Ok(line) if line.contains(|c: char| c.is_control() && c != '\t') => Some(Completed::NotText),
            Ok(line) => Some(Completed::Line(line.trim_ascii())),
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{Completed, Line, MOST_BYTES};
    use std::string::{String, ToString};
    use std::vec::Vec;

    fn lines(bytes: &[u8]) -> Vec<Result<String, ()>> {
        let mut line = Line::new();
        let mut found = Vec::new();
        for &byte in bytes {
            match line.push(byte) {
                Some(Completed::Line(text)) => found.push(Ok(text.to_string())),
                Some(_) => found.push(Err(())),
                None => {}
            }
        }
        found
    }

    #[test]
    fn lines_end_with_either_or_both() {
        assert_eq!(
            lines(b"load\r\nset a 1\n\r\n  help \r"),
            [Ok("load".into()), Ok("set a 1".into()), Ok("help".into())]
        );
    }

    #[test]
    fn backspace_takes_back_one_byte() {
        assert_eq!(lines(b"\x08lpp\x08\x7foad\n"), [Ok("load".into())]);
    }

    #[test]
    fn what_is_too_long_is_forgotten_to_its_end() {
        let long = [b'x'; MOST_BYTES + 1];
        assert_eq!(lines(&[&long, &b"\nhelp\n"[..]].concat()), [Err(()), Ok("help".into())]);
        assert_eq!(lines(&[&long[1..], b"\n"].concat()).len(), 1);
    }

    #[test]
    fn noise_is_no_line() {
        assert_eq!(lines(b"\xff\xfe\nhe\0lp\nhelp\n"), [Err(()), Err(()), Ok("help".into())]);
    }
}
