//! Reading a port until told to stop: what comes is handed on, what is typed is written to it, and a port that vanishes is
//! waited for.

use std::io::{self, ErrorKind, Read, Write};
use std::sync::mpsc::Receiver;
use std::thread;
use std::time::Duration;

/// How often to look whether a port that vanished is back.
const RETRY: Duration = Duration::from_millis(200);

/// What became of the port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// It vanished: unplugged, or the emulator has ended.
    Gone,
    /// It is there again.
    Back,
}

/// What to do when the port vanishes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhenGone {
    /// Wait for it.
    Wait,
    /// Return.
    End,
}

/// Reads `port` until `stop` says so. Bytes go to `on_bytes`, changes to `on_event`; `reopen` opens the port anew
/// after it has vanished. What is typed meanwhile is lost.
pub fn watch<P: Read + Write>(
    mut port: P,
    typed: &Receiver<Vec<u8>>,
    when_gone: WhenGone,
    mut reopen: impl FnMut() -> io::Result<P>,
    mut on_bytes: impl FnMut(&[u8]),
    mut on_event: impl FnMut(Event),
    stop: impl Fn() -> bool,
) {
    let mut buffer = vec![0; 4096];
    while !stop() {
        for line in typed.try_iter() {
            // Where the port is gone the read says so, too.
            let _ = port.write_all(&line);
        }
        match port.read(&mut buffer) {
            Ok(count) if count > 0 => on_bytes(&buffer[..count]),
            // Nothing came for a moment.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::TimedOut | ErrorKind::WouldBlock | ErrorKind::Interrupted
                ) => {}
            Ok(_) | Err(_) => {
                on_event(Event::Gone);
                if when_gone == WhenGone::End {
                    return;
                }
                port = loop {
                    if stop() {
                        return;
                    }
                    if let Ok(port) = reopen() {
                        break port;
                    }
                    thread::sleep(RETRY);
                };
                on_event(Event::Back);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Event, WhenGone, watch};
    use std::cell::{Cell, RefCell};
    use std::collections::VecDeque;
    use std::io::{self, ErrorKind, Read, Write};
    use std::rc::Rc;
    use std::sync::mpsc;

    /// A port that does what it is told: bytes, or an error. What is written to it is kept.
    struct Scripted(VecDeque<Result<Vec<u8>, ErrorKind>>, Rc<RefCell<Vec<u8>>>);

    impl Write for Scripted {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.1.borrow_mut().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Read for Scripted {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            match self.0.pop_front() {
                Some(Ok(bytes)) => {
                    buffer[..bytes.len()].copy_from_slice(&bytes);
                    Ok(bytes.len())
                }
                Some(Err(kind)) => Err(kind.into()),
                None => Ok(0),
            }
        }
    }

    fn scripted(parts: &[Result<&str, ErrorKind>]) -> Scripted {
        Scripted(parts.iter().map(|part| part.map(|text| text.as_bytes().to_vec())).collect(), Rc::default())
    }

    /// Watches ports one after the other, until there is none left.
    fn run(ports: Vec<Option<Scripted>>, when_gone: WhenGone) -> (String, Vec<Event>) {
        let mut ports = ports.into_iter();
        let first = ports.next().flatten().expect("a first port");
        let (heard, events, over) = (RefCell::new(String::new()), RefCell::new(Vec::new()), Cell::new(false));
        let reopen = || match ports.next() {
            Some(Some(port)) => Ok(port),
            Some(None) => Err(ErrorKind::NotFound.into()),
            None => {
                over.set(true);
                Err(ErrorKind::NotFound.into())
            }
        };
        let on_bytes = |bytes: &[u8]| heard.borrow_mut().push_str(&String::from_utf8_lossy(bytes));
        watch(
            first,
            &mpsc::channel().1,
            when_gone,
            reopen,
            on_bytes,
            |event| events.borrow_mut().push(event),
            || over.get(),
        );
        (heard.into_inner(), events.into_inner())
    }

    #[test]
    fn silence_is_no_reason_to_leave() {
        let port = scripted(&[Ok("a"), Err(ErrorKind::TimedOut), Err(ErrorKind::WouldBlock), Ok("b")]);
        assert_eq!(run(vec![Some(port)], WhenGone::End), ("ab".into(), vec![Event::Gone]));
    }

    #[test]
    fn what_is_typed_is_written() {
        let port = scripted(&[Ok("a"), Err(ErrorKind::TimedOut)]);
        let written = port.1.clone();
        let (sender, typed) = mpsc::channel();
        sender.send(b"load\n".to_vec()).unwrap();
        watch(port, &typed, WhenGone::End, || Err(ErrorKind::NotFound.into()), |_| (), |_| (), || false);
        assert_eq!(*written.borrow(), b"load\n");
    }

    #[test]
    fn a_port_that_vanishes_is_waited_for() {
        let ports = vec![
            Some(scripted(&[Ok("one "), Err(ErrorKind::BrokenPipe)])),
            None,
            Some(scripted(&[Ok("two")])),
        ];
        let (heard, events) = run(ports, WhenGone::Wait);
        assert_eq!(heard, "one two");
        assert_eq!(events, [Event::Gone, Event::Back, Event::Gone]);
    }
}
