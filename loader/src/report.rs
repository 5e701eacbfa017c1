//! What the loader says: lines that a person can read. Each ends with its checksum, so a damaged one is not believed.

use crate::crc::{Crc, checksum};
use crate::frame::Kernel;
use core::fmt::{self, Write};

/// What every line begins with.
const START: &str = "@loader ";
/// What stands before the checksum.
const SUM: &str = " #";

/// A line from the loader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Report {
    /// It has nothing yet.
    Ready,
    /// It has this many bytes of this kernel, from the first on. With a number it is the answer to that frame.
    At {
        /// The bytes.
        place: u32,
        /// The kernel.
        kernel: Kernel,
        /// The frame's number.
        number: Option<u32>,
    },
    /// The kernel runs next.
    Go,
    /// Kernels have at most this many bytes.
    Refuses {
        /// The bytes.
        most: u32,
    },
}

impl Report {
    /// Reads a line, and what noise stands before it; `None` if there is no whole report in it.
    pub fn find(line: &str) -> Option<Self> {
        let line = line.trim_end();
        let line = &line[line.rfind(START)?..];
        let (text, sum) = line.rsplit_once(SUM)?;
        if sum.len() != 8 || u32::from_str_radix(sum, 16).ok()? != checksum(text.as_bytes()) {
            return None;
        }
        let mut words = text[START.len()..].split(' ');
        let mut word = || words.next();
        Some(match word()? {
            "ready" => Self::Ready,
            "go" => Self::Go,
            "refuses" => Self::Refuses { most: word()?.parse().ok()? },
            "at" => {
                let place = word()?.parse().ok()?;
                let length = word()?.parse().ok()?;
                let checksum = u32::from_str_radix(word()?, 16).ok()?;
                let number = match word() {
                    Some(number) => Some(number.parse().ok()?),
                    None => None,
                };
                Self::At { place, kernel: Kernel { length, checksum }, number }
            }
            _ => return None,
        })
    }

    /// Whether a line looks like the loader's, though it may be damaged, or of a version that is not understood.
    pub fn resembles(line: &str) -> bool {
        line.contains(START)
    }
}

/// The line without its end.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut line = Summed { to: f, sum: Crc::new() };
        line.write_str(START)?;
        match self {
            Self::Ready => line.write_str("ready")?,
            Self::Go => line.write_str("go")?,
            Self::Refuses { most } => write!(line, "refuses {most}")?,
            Self::At { place, kernel, number } => {
                write!(line, "at {place} {} {:08x}", kernel.length, kernel.checksum)?;
                if let Some(number) = number {
                    write!(line, " {number}")?;
                }
            }
        }
        let sum = line.sum.value();
        write!(f, "{SUM}{sum:08x}")
    }
}

/// Adds up what is written.
struct Summed<'a, 'b> {
    to: &'a mut fmt::Formatter<'b>,
    sum: Crc,
}

impl Write for Summed<'_, '_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        text.bytes().for_each(|byte| self.sum.add(byte));
        self.to.write_str(text)
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::Report;
    use crate::frame::Kernel;
    use std::format;
    use std::string::{String, ToString};

    const KERNEL: Kernel = Kernel { length: 450_000, checksum: 0xabc };

    fn reports() -> [Report; 5] {
        [
            Report::Ready,
            Report::Go,
            Report::Refuses { most: 5000 },
            Report::At { place: 4096, kernel: KERNEL, number: None },
            Report::At { place: 0, kernel: KERNEL, number: Some(17) },
        ]
    }

    #[test]
    fn a_line_is_read_as_written_behind_noise() {
        for report in reports() {
            assert_eq!(Report::find(&format!("no@loader ise{report}\r")), Some(report));
        }
    }

    #[test]
    fn no_line_with_one_wrong_byte_is_believed() {
        for report in reports() {
            let line = report.to_string();
            for at in 0..line.len() {
                let mut damaged = line.clone().into_bytes();
                damaged[at] ^= 1;
                let damaged = String::from_utf8(damaged).unwrap();
                assert_eq!(Report::find(&damaged), None, "{damaged}");
                let shorter = [&line[..at], &line[at + 1..]].concat();
                assert_eq!(Report::find(&shorter), None, "{shorter}");
            }
        }
    }

    #[test]
    fn a_line_of_another_version_is_none() {
        assert_eq!(Report::find("@loader ready"), None);
        assert!(Report::resembles("@loader ready"));
    }
}
