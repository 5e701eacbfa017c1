//! Handing a kernel to the chain loader (`loader/`), as docs/serial-loader.md describes it.

use super::port::Port;
use anyhow::{Context, Result, bail};
use std::io::ErrorKind;
use std::time::{Duration, Instant};

/// What a header begins with.
pub const MAGIC: [u8; 4] = *b"MGPL";
/// Bytes of a chunk; the last may have fewer.
pub const CHUNK_BYTES: usize = 4096;
/// The chunk has arrived.
pub const TAKEN: u8 = 0x06;
/// It was damaged: once more.
pub const AGAIN: u8 = 0x15;
/// What the loader says while it waits.
const READY: &str = "@loader ready";
/// How often one chunk is tried.
const TRIES: u32 = 10;

/// Waits for the loader, at most `patience`, and hands over `kernel`. `progress` is told the bytes done.
pub fn push(
    port: &mut dyn Port,
    kernel: &[u8],
    patience: Duration,
    progress: &mut dyn FnMut(usize),
    stop: &dyn Fn() -> bool,
) -> Result<()> {
    let mut line = Line { port, heard: Vec::new(), stop };
    for _ in 0..TRIES {
        if attempt(&mut line, kernel, patience, progress)? {
            return Ok(());
        }
    }
    bail!("bytes were lost {TRIES} times: look at the cable");
}

/// Hands the kernel over, from the header on. `false` when the loader has lost bytes and waits for the header again.
fn attempt(
    line: &mut Line<'_>,
    kernel: &[u8],
    patience: Duration,
    progress: &mut dyn FnMut(usize),
) -> Result<bool> {
    line.wait_for(READY, patience).context(
        "the loader does not say that it is ready: is its card in the board, and the board reset?",
    )?;
    let length = u32::try_from(kernel.len()).context("the kernel is larger than any board's memory")?;
    let mut header = MAGIC.to_vec();
    header.extend(length.to_le_bytes());
    header.extend(crc32fast::hash(kernel).to_le_bytes());
    line.send(&header)?;
    let answer = line.wait_for("@loader ", Duration::from_secs(5))?;
    if answer != "take" {
        bail!("the loader refuses the kernel: {answer}");
    }
    let mut done = 0;
    for chunk in kernel.chunks(CHUNK_BYTES) {
        let mut tries = 0;
        loop {
            line.send(chunk)?;
            line.send(&crc32fast::hash(chunk).to_le_bytes())?;
            match line.byte(Duration::from_secs(10))? {
                TAKEN => break,
                AGAIN if tries < TRIES => tries += 1,
                AGAIN => bail!("a part of the kernel arrived damaged {TRIES} times: look at the cable"),
                // The beginning of a line: it has missed bytes, says so, and will be ready again.
                b'@' => return Ok(false),
                other => bail!("the loader answered with {other:#04x}: was the board reset?"),
            }
        }
        done += chunk.len();
        progress(done);
    }
    match line.wait_for("@loader ", Duration::from_secs(10))?.as_str() {
        "go" => Ok(true),
        answer => bail!("the loader does not start the kernel: {answer}"),
    }
}

struct Line<'a> {
    port: &'a mut dyn Port,
    heard: Vec<u8>,
    stop: &'a dyn Fn() -> bool,
}

impl Line<'_> {
    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.port
            .write_all(bytes)
            .and_then(|()| self.port.flush())
            .context("the port does not take what is sent")
    }

    /// The next byte.
    fn byte(&mut self, patience: Duration) -> Result<u8> {
        let began = Instant::now();
        let mut one = [0];
        loop {
            match self.port.read(&mut one) {
                Ok(1) => return Ok(one[0]),
                Ok(_) => bail!("the port is gone"),
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::TimedOut | ErrorKind::WouldBlock | ErrorKind::Interrupted
                    ) => {}
                Err(error) => return Err(error).context("the port is gone"),
            }
            if (self.stop)() {
                bail!("interrupted");
            }
            if began.elapsed() > patience {
                bail!("no answer for {} s", patience.as_secs());
            }
        }
    }

    /// Reads lines until one begins with `start`, and returns the rest of it. Other lines are passed over.
    fn wait_for(&mut self, start: &str, patience: Duration) -> Result<String> {
        let began = Instant::now();
        loop {
            let left = patience.checked_sub(began.elapsed()).context("no answer in time")?;
            match self.byte(left)? {
                b'\n' => {
                    let line = String::from_utf8_lossy(&std::mem::take(&mut self.heard)).into_owned();
                    // Garbage may stand before it on its line.
                    if let Some(at) = line.find(start) {
                        let rest = line[at + start.len()..].trim().to_owned();
                        if start == READY || rest != READY.trim_start_matches("@loader ") {
                            return Ok(rest);
                        }
                    }
                }
                byte if self.heard.len() < 1024 => self.heard.push(byte),
                _ => self.heard.clear(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{AGAIN, MAGIC, TAKEN, push};
    use std::collections::VecDeque;
    use std::io::{self, Read, Write};
    use std::time::Duration;

    /// Stands in for the loader: takes what is sent, answers by the protocol, damages what it is told to.
    #[derive(Default)]
    struct Loader {
        answers: VecDeque<u8>,
        received: Vec<u8>,
        kernel: Vec<u8>,
        expected: Option<(usize, u32)>,
        /// So many chunks are said to be damaged.
        damaged: u32,
        refuses: bool,
        /// The first chunk arrives with bytes missing: it says so, and begins anew.
        loses: bool,
    }

    impl Loader {
        fn ready() -> Self {
            let mut loader = Self::default();
            loader.say("\0\u{fffd}garbage\n@loader ready\n@loader ready\n");
            loader
        }

        fn say(&mut self, text: &str) {
            self.answers.extend(text.as_bytes());
        }

        fn word(&self, at: usize) -> u32 {
            u32::from_le_bytes(self.received[at..at + 4].try_into().unwrap())
        }

        fn react(&mut self) {
            let Some((length, all)) = self.expected else {
                if self.received.len() == 12 {
                    assert_eq!(self.received[..4], MAGIC);
                    self.expected = Some((self.word(4) as usize, self.word(8)));
                    self.received.clear();
                    self.say(if self.refuses { "@loader too large\n" } else { "@loader take\n" });
                }
                return;
            };
            let chunk = (length - self.kernel.len()).min(super::CHUNK_BYTES);
            if self.received.len() < chunk + 4 {
                return;
            }
            if self.loses {
                self.loses = false;
                self.received.clear();
                self.expected = None;
                self.say("@loader no more bytes came; once more\n@loader ready\n");
                return;
            }
            assert_eq!(self.word(chunk), crc32fast::hash(&self.received[..chunk]));
            if self.damaged > 0 {
                self.damaged -= 1;
                self.answers.push_back(AGAIN);
            } else {
                self.kernel.extend(&self.received[..chunk]);
                self.answers.push_back(TAKEN);
            }
            self.received.clear();
            if self.kernel.len() == length {
                let whole = crc32fast::hash(&self.kernel) == all;
                self.say(if whole { "@loader go\n" } else { "@loader damaged\n" });
            }
        }
    }

    impl Read for Loader {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let byte = self.answers.pop_front().ok_or(io::ErrorKind::TimedOut)?;
            buffer[0] = byte;
            Ok(1)
        }
    }

    impl Write for Loader {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.received.extend(bytes);
            self.react();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn kernel() -> Vec<u8> {
        (0..3 * super::CHUNK_BYTES + 100).map(|i| (i * 11) as u8).collect()
    }

    #[test]
    fn after_lost_bytes_everything_is_sent_again() {
        let mut loader = Loader { loses: true, ..Loader::ready() };
        hand_over(&mut loader).unwrap();
        assert!(loader.kernel == kernel());
    }

    fn hand_over(loader: &mut Loader) -> anyhow::Result<usize> {
        let mut told = 0;
        push(loader, &kernel(), Duration::from_millis(50), &mut |done| told = done, &|| false)?;
        Ok(told)
    }

    #[test]
    fn a_kernel_arrives_whole() {
        let mut loader = Loader::ready();
        assert_eq!(hand_over(&mut loader).unwrap(), kernel().len());
        assert!(loader.kernel == kernel());
    }

    #[test]
    fn damaged_chunks_are_sent_again_but_not_for_ever() {
        let mut loader = Loader { damaged: 3, ..Loader::ready() };
        hand_over(&mut loader).unwrap();
        assert!(loader.kernel == kernel());
        let mut loader = Loader { damaged: 1000, ..Loader::ready() };
        assert!(hand_over(&mut loader).unwrap_err().to_string().contains("look at the cable"));
    }

    #[test]
    fn refusals_and_silence_are_told() {
        let mut loader = Loader { refuses: true, ..Loader::ready() };
        assert!(hand_over(&mut loader).unwrap_err().to_string().contains("too large"));
        let error = hand_over(&mut Loader::default()).unwrap_err();
        assert!(error.to_string().contains("does not say that it is ready"), "{error}");
    }
}
