//! Handing a kernel to the chain loader (`loader/`): the sender at a port, with the time of day.

use super::port::Port;
use super::sender::{Arrived, Sender, Step};
use anyhow::{Context, Result, bail};
use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

/// How long a port may take nothing. What was sent of a frame until then counts as lost.
const WRITE_LIMIT: Duration = Duration::from_secs(10);
/// A write of more could wait in the system, where Ctrl-C is not heard.
const WRITE_BYTES: usize = 256;

/// What the user hears meanwhile.
pub enum Told {
    /// The bytes that the loader has, of all.
    Progress(usize, usize),
    /// What has happened.
    Remark(String),
}

/// Waits for the loader, at most `patience`, and hands over `kernel`.
pub fn push(
    port: &mut dyn Port,
    kernel: &[u8],
    patience: Duration,
    tell: &mut dyn FnMut(Told),
    stop: &dyn Fn() -> bool,
) -> Result<Arrived> {
    let began = Instant::now();
    let mut sender = Sender::new(kernel, patience)?;
    let mut buffer = [0; 256];
    loop {
        let step = sender.step(began.elapsed());
        while let Some(remark) = sender.remark() {
            tell(Told::Remark(remark));
        }
        let (done, all) = sender.progress();
        tell(Told::Progress(done, all));
        match step? {
            Step::Done(arrived) => return Ok(arrived),
            Step::Send(frame) => {
                send(port, &frame, stop)?;
                sender.sent(began.elapsed());
            }
            Step::Listen(_) => match port.read(&mut buffer) {
                Ok(0) => bail!("the port is gone"),
                Ok(count) => sender.hear(&buffer[..count], began.elapsed()),
                Err(error) if is_pause(&error) => {}
                Err(error) => return Err(error).context("the port is gone"),
            },
        }
        if stop() {
            bail!("interrupted");
        }
    }
}

/// Whether nothing came, or nothing could go, for a moment.
fn is_pause(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::TimedOut | ErrorKind::WouldBlock | ErrorKind::Interrupted)
}

/// Sends as fast as the port takes it. One that takes no more is treated as one that loses it.
fn send(port: &mut dyn Port, mut bytes: &[u8], stop: &dyn Fn() -> bool) -> Result<()> {
    let mut last = Instant::now();
    while !bytes.is_empty() && !stop() && last.elapsed() < WRITE_LIMIT {
        match port.write(&bytes[..bytes.len().min(WRITE_BYTES)]) {
            Ok(0) => bail!("the port is gone"),
            Ok(count) => {
                bytes = &bytes[count..];
                last = Instant::now();
            }
            Err(error) if is_pause(&error) => {}
            Err(error) => return Err(error).context("the port does not take what is sent"),
        }
    }
    match port.flush() {
        Err(error) if !is_pause(&error) => Err(error).context("the port does not take what is sent"),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Told, push};
    use magpie_loader::Report;
    use std::io::{self, ErrorKind, Read, Write};
    use std::time::Duration;

    /// A port at which a loader refuses, or nobody is. It takes one byte at a time, and only every other time.
    struct Slow {
        said: Vec<u8>,
        taken: usize,
        is_busy: bool,
    }

    impl Read for Slow {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            if self.said.is_empty() {
                return Err(ErrorKind::TimedOut.into());
            }
            buffer[0] = self.said.remove(0);
            Ok(1)
        }
    }

    impl Write for Slow {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            self.is_busy = !self.is_busy;
            if self.is_busy {
                return Err(ErrorKind::TimedOut.into());
            }
            self.taken += 1;
            Ok(1)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn hand_over(said: String) -> (usize, String) {
        let mut port = Slow { said: said.into_bytes(), taken: 0, is_busy: false };
        let tell = &mut |_: Told| ();
        let error = push(&mut port, &[7; 1000], Duration::from_millis(50), tell, &|| false).unwrap_err();
        (port.taken, error.to_string())
    }

    #[test]
    fn a_port_that_takes_little_at_a_time_is_waited_for() {
        let (taken, error) = hand_over(format!("{}\n{}\n", Report::Ready, Report::Refuses { most: 10 }));
        assert!(error.contains("room for 10"), "{error}");
        assert_eq!(taken, 256 + magpie_loader::HEADER_BYTES + 4);
    }

    #[test]
    fn silence_is_told() {
        let (taken, error) = hand_over(String::new());
        assert!(error.contains("does not say that it is ready"), "{error}");
        assert_eq!(taken, 0);
    }
}
