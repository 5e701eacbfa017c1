//! Ends of a line that can be waited for in `poll`: a serial port, or the socket of an emulator.

use crate::serial::port::SOCKET;
use serialport::TTYPort;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// This machine's end of a line. A read that finds nothing, or a write that finds no room, fails with `WouldBlock` or `TimedOut`.
pub trait Ends: Read + Write + AsFd + Send {}

impl<T: Read + Write + AsFd + Send> Ends for T {}

/// A serial port, which knows its number only.
struct Port(TTYPort);

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the port's own, which is open as long as that is there.
        unsafe { BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}

impl Read for Port {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Port {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Opens an end, at a speed in bits per second; `unix:PATH` is a socket.
pub fn open(name: &str, baud: u32) -> io::Result<Box<dyn Ends>> {
    if let Some(path) = name.strip_prefix(SOCKET) {
        let stream = UnixStream::connect(path)?;
        stream.set_nonblocking(true)?;
        return Ok(Box::new(stream));
    }
    Ok(Box::new(Port(serialport::new(name, baud).timeout(Duration::ZERO).open_native()?)))
}
