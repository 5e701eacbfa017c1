//! What is typed here for the other end of a serial line, a line at a time: the terminal edits it, and echoes it.

use std::io::{self, BufRead, Read, Write};
use std::sync::mpsc::{self, Receiver};
use std::thread;

/// Lines that wait for the other end at most; then whoever types waits.
const MAX_LINES: usize = 16;
/// A line that is longer is handed on in parts.
const MAX_LINE_BYTES: u64 = 4096;

/// The next line from `input`, with its end; `None` after its end.
fn next_line(input: &mut impl BufRead) -> Option<Vec<u8>> {
    let mut line = Vec::new();
    let read = input.by_ref().take(MAX_LINE_BYTES).read_until(b'\n', &mut line);
    if !matches!(read, Ok(count) if count > 0) {
        return None;
    }
    // The last one may lack it.
    if !line.ends_with(b"\n") && (line.len() as u64) < MAX_LINE_BYTES {
        line.push(b'\n');
    }
    Some(line)
}

/// Lines from standard input, with their ends, as they come; none any more after its end.
pub fn lines() -> Receiver<Vec<u8>> {
    let (sender, receiver) = mpsc::sync_channel(MAX_LINES);
    // It waits in a read when this tool ends, and ends with it.
    thread::spawn(move || {
        let mut input = io::stdin().lock();
        while let Some(line) = next_line(&mut input) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Writes lines to `port` as they come, until either ends. It waits for the port as long as that takes.
pub fn copy_to(mut port: impl Write, lines: &Receiver<Vec<u8>>) {
    for line in lines {
        if port.write_all(&line).and_then(|()| port.flush()).is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{MAX_LINE_BYTES, next_line};
    use crate::memory_count::most_during;
    use crate::random::{Random, setting};

    #[test]
    fn whatever_is_typed_arrives_in_order_and_in_little_memory() {
        let first = setting("MAGPIE_SEED", 1);
        for seed in first..first + setting("MAGPIE_FUZZ", 500) {
            let mut random = Random::new(seed);
            let mut typed = Vec::new();
            for _ in 0..random.below(10) {
                let length = [3, 100, MAX_LINE_BYTES as usize, 30_000][random.below(4)] + random.below(3);
                typed.extend((0..length).map(|_| random.next() as u8));
                typed.extend(b"\n".repeat(random.below(3)));
            }
            let (mut input, mut handed_on) = (&typed[..], 0);
            let most = most_during(|| {
                while let Some(line) = next_line(&mut input) {
                    assert!(!line.is_empty() && line.len() <= MAX_LINE_BYTES as usize, "seed {seed}");
                    assert!(!line[..line.len() - 1].contains(&b'\n'), "seed {seed}: two lines in one");
                    let rest = &typed[handed_on..];
                    let known = line.len().min(rest.len());
                    assert_eq!(line[..known], rest[..known], "seed {seed}");
                    // Only the end of the last line may be added.
                    assert!(known == line.len() || line[known..] == *b"\n", "seed {seed}");
                    handed_on += known;
                }
            });
            assert_eq!(handed_on, typed.len(), "seed {seed}");
            assert!(most < 64 * 1024, "seed {seed}: {most} bytes");
        }
    }

    #[test]
    fn lines_come_one_by_one_and_long_ones_in_parts() {
        let long = "x".repeat(MAX_LINE_BYTES as usize + 10);
        let text = format!("load\n\n{long}\nlast");
        let mut input = text.as_bytes();
        assert_eq!(next_line(&mut input).unwrap(), b"load\n");
        assert_eq!(next_line(&mut input).unwrap(), b"\n");
        assert_eq!(next_line(&mut input).unwrap(), "x".repeat(MAX_LINE_BYTES as usize).as_bytes());
        assert_eq!(next_line(&mut input).unwrap(), b"xxxxxxxxxx\n");
        assert_eq!(next_line(&mut input).unwrap(), b"last\n");
        assert_eq!(next_line(&mut input), None);
    }
}
