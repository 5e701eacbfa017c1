//! Shows decoded output from a thread of its own: whoever reads it may stop reading, and then that thread waits, and nobody
//! else. What waits is counted, so that the source can be left alone meanwhile.

use super::{Output, show};
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// So many bytes may wait to be written before the source is to wait.
const MAX_WAITING_BYTES: usize = 1024 * 1024;
/// What an output counts beside its text.
const OUTPUT_BYTES: usize = 64;
/// How often to look whether all is written.
const GLANCE: Duration = Duration::from_millis(10);

/// Where output goes.
pub struct Outlet {
    sender: Sender<Output>,
    /// Relaxed: it is a number on its own.
    waiting: Arc<AtomicUsize>,
    writer: JoinHandle<io::Result<()>>,
}

impl Outlet {
    /// Writes to `out`.
    pub fn to(mut out: impl Write + Send + 'static) -> Self {
        let (sender, outputs) = mpsc::channel::<Output>();
        let waiting = Arc::new(AtomicUsize::new(0));
        let rest = waiting.clone();
        let writer = thread::spawn(move || {
            for output in outputs {
                show(&output, &mut out)?;
                rest.fetch_sub(cost(&output), Ordering::Relaxed);
            }
            Ok(())
        });
        Self { sender, waiting, writer }
    }

    /// Takes an output. It never waits.
    pub fn put(&self, output: Output) {
        self.waiting.fetch_add(cost(&output), Ordering::Relaxed);
        // After an error nobody takes it; `end` returns the error.
        let _ = self.sender.send(output);
    }

    /// Whether there is room for more.
    pub fn is_ready(&self) -> bool {
        self.has_failed() || self.waiting.load(Ordering::Relaxed) < MAX_WAITING_BYTES
    }

    /// Whether nothing can be written any more.
    pub fn has_failed(&self) -> bool {
        self.writer.is_finished()
    }

    /// Waits until all is written, or until `stop` says so; `None` then, and the rest is dropped.
    pub fn end(self, stop: impl Fn() -> bool) -> Option<io::Result<()>> {
        drop(self.sender);
        while !self.writer.is_finished() {
            if stop() {
                return None;
            }
            thread::sleep(GLANCE);
        }
        Some(self.writer.join().unwrap_or_else(|_| Err(io::Error::other("the writing thread panicked"))))
    }
}

fn cost(output: &Output) -> usize {
    OUTPUT_BYTES
        + match output {
            Output::Text(text) | Output::Part(text) => text.len(),
            Output::Log(text) | Output::Warning(text) => text.len(),
            Output::Notice(_) | Output::Record(..) => 0,
        }
}

#[cfg(test)]
mod tests {
    use super::{MAX_WAITING_BYTES, Outlet};
    use crate::stream::Output;
    use std::io::{self, ErrorKind, Read};

    fn line(bytes: usize) -> Output {
        Output::Text(vec![b'x'; bytes])
    }

    #[test]
    fn everything_is_written_in_order() {
        let (mut reader, writer) = io::pipe().unwrap();
        let outlet = Outlet::to(writer);
        for text in ["one", "two"] {
            outlet.put(Output::Log(text.into()));
        }
        outlet.end(|| false).unwrap().unwrap();
        let mut text = String::new();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }

    #[test]
    fn a_reader_that_does_not_read_is_waited_for_by_nobody_else() {
        let (_reader, writer) = io::pipe().unwrap();
        let outlet = Outlet::to(writer);
        let mut put = 0;
        while outlet.is_ready() {
            outlet.put(line(10_000));
            put += 10_000;
            assert!(put < 10 * MAX_WAITING_BYTES, "what waits has no bound");
        }
        assert!(put > MAX_WAITING_BYTES / 2);
        assert!(outlet.end(|| true).is_none());
    }

    #[test]
    fn a_reader_that_is_gone_is_told() {
        let (reader, writer) = io::pipe().unwrap();
        drop(reader);
        let outlet = Outlet::to(writer);
        outlet.put(line(1));
        assert_eq!(outlet.end(|| false).unwrap().unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
