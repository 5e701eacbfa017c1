//! A recording of frames as a file: a line of text for each, with the milliseconds since the beginning and the frame's bytes.
//!
//! ```text
//!   1520 0b01030105...
//! ```

use super::frame::{Record, read};
use crate::failure::usage;
use anyhow::{Context, Result};
use std::fs::File;
use std::io::{BufRead, BufReader, LineWriter, Write};
use std::path::Path;
use std::time::{Duration, Instant};

/// A file that frames are written to.
pub struct Writer {
    file: LineWriter<File>,
    began: Instant,
}

impl Writer {
    /// Makes the file.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create(path).with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { file: LineWriter::new(file), began: Instant::now() })
    }

    /// Writes a frame, as it came.
    pub fn take(&mut self, frame: &[u8]) -> Result<()> {
        let bytes: String = frame.iter().map(|byte| format!("{byte:02x}")).collect();
        writeln!(self.file, "{} {bytes}", self.began.elapsed().as_millis())
            .context("cannot write the recording")
    }

    /// Writes what is left.
    pub fn finish(mut self) -> Result<()> {
        self.file.flush().context("cannot write the recording")
    }
}

/// What is in a recording: when each frame came, its number, and what it says.
pub fn frames(path: &Path) -> Result<impl Iterator<Item = Result<(Duration, u64, Record)>> + use<>> {
    let file = File::open(path).map_err(|error| usage(format!("cannot read {}: {error}", path.display())))?;
    let name = path.display().to_string();
    Ok(BufReader::new(file).lines().map(move |line| {
        let line = line.with_context(|| format!("cannot read {name}"))?;
        frame(&line).ok_or_else(|| {
            usage(format!(
                "{name} is no recording: 'cargo xtask top --record FILE' and 'trace --record FILE' write one"
            ))
        })
    }))
}

fn frame(line: &str) -> Option<(Duration, u64, Record)> {
    let (at, bytes) = line.split_once(' ')?;
    let digits: Vec<u8> =
        bytes.chars().map(|digit| digit.to_digit(16).map(|digit| digit as u8)).collect::<Option<_>>()?;
    let bytes: Vec<u8> =
        digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| (byte << 4) | digit)).collect();
    let (sequence, record) = read(&bytes)?;
    Some((Duration::from_millis(at.parse().ok()?), sequence, record))
}

#[cfg(test)]
mod tests {
    use super::{Writer, frame, frames};
    use crate::trace::Record;
    use crate::trace::frame::tests::encode;

    #[test]
    fn what_is_written_is_read() {
        let path = std::env::temp_dir().join(format!("magpie-tape-{}", std::process::id()));
        let mut writer = Writer::create(&path).unwrap();
        writer.take(&encode(&[1, 4, 0, 7, 100, 4, 9])).unwrap();
        writer.finish().unwrap();
        let read: Vec<_> = frames(&path).unwrap().map(Result::unwrap).collect();
        std::fs::remove_file(&path).unwrap();
        assert_eq!(read.len(), 1);
        assert_eq!((read[0].1, &read[0].2), (7, &Record::Hello { frequency: 100, cores: 4, now: 9 }));
    }

    #[test]
    fn anything_else_is_refused() {
        for line in ["", "12", "a 00", "1 0g", "1 00", "1 é"] {
            assert!(frame(line).is_none(), "{line}");
        }
    }
}
