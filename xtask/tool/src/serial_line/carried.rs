//! One connection: what comes from the one side goes to the other, both ways, as fast as that takes it.

use nix::libc;
use nix::poll::PollFlags;
use nix::sys::socket::{setsockopt, sockopt};
use smoltcp::iface::SocketHandle;
use smoltcp::socket::tcp::{RecvError, Socket, State};
use smoltcp::time::Duration;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};

/// What a connection's buffers have over the line: less than one at the usual speed carries in a second, after which TCP would send it again; and what the other machine may send.
const SEND_BYTES: usize = 8 << 10;
const RECEIVE_BYTES: usize = 16 << 10;
/// After so long a quiet machine is asked whether it is there, and given up after the other.
const QUIET: Duration = Duration::from_secs(15);
const PATIENCE: Duration = Duration::from_secs(60);

/// A socket of smoltcp's for one.
pub fn socket() -> Socket<'static> {
    let buffer = |bytes| smoltcp::socket::tcp::SocketBuffer::new(vec![0; bytes]);
    let mut socket = Socket::new(buffer(RECEIVE_BYTES), buffer(SEND_BYTES));
    // What is read at once is sent at once.
    socket.set_nagle_enabled(false);
    socket.set_keep_alive(Some(QUIET));
    socket.set_timeout(Some(PATIENCE));
    socket
}

/// The two ends.
pub struct Carried {
    pub handle: SocketHandle,
    /// This machine's end, until there is nothing more to do with it.
    stream: Option<TcpStream>,
    /// This machine's side has said all; the other's has, and was told so.
    has_read_all: bool,
    has_written_all: bool,
}

impl Carried {
    pub const fn new(handle: SocketHandle, stream: TcpStream) -> Self {
        Self { handle, stream: Some(stream), has_read_all: false, has_written_all: false }
    }

    /// Moves what can be moved.
    pub fn carry(&mut self, socket: &mut Socket<'_>) {
        let Some(mut stream) = self.stream.take() else { return };
        if self.write(socket, &mut stream).is_err() || self.read(socket, &mut stream).is_err() {
            // This machine's side has broken off.
            socket.abort();
            return;
        }
        match socket.state() {
            State::Closed if self.has_written_all => {}
            // The other side has broken off, or did not answer.
            State::Closed => reset(&stream),
            _ if self.has_read_all && self.has_written_all => {}
            _ => self.stream = Some(stream),
        }
    }

    fn write(&mut self, socket: &mut Socket<'_>, stream: &mut TcpStream) -> Result<(), ErrorKind> {
        while !self.has_written_all {
            let written = socket.recv(|bytes| match bytes.is_empty() {
                true => (0, Ok(0)),
                false => {
                    let written = stream.write(bytes).map_err(|error| error.kind());
                    (written.unwrap_or(0), written)
                }
            });
            match written {
                Ok(Ok(0) | Err(ErrorKind::WouldBlock)) | Err(RecvError::InvalidState) => break,
                Ok(Ok(_) | Err(ErrorKind::Interrupted)) => {}
                Ok(Err(error)) => return Err(error),
                Err(RecvError::Finished) => {
                    self.has_written_all = true;
                    // It may have gone.
                    let _ = stream.shutdown(Shutdown::Write);
                }
            }
        }
        Ok(())
    }

    fn read(&mut self, socket: &mut Socket<'_>, stream: &mut TcpStream) -> Result<(), ErrorKind> {
        while !self.has_read_all && socket.can_send() {
            let read = socket.send(|room| {
                let read = stream.read(room).map_err(|error| error.kind());
                (read.unwrap_or(0), read)
            });
            match read {
                Ok(Ok(0)) => {
                    self.has_read_all = true;
                    socket.close();
                }
                Ok(Ok(_) | Err(ErrorKind::Interrupted)) => {}
                Ok(Err(ErrorKind::WouldBlock)) | Err(_) => break,
                Ok(Err(error)) => return Err(error),
            }
        }
        Ok(())
    }

    /// This machine's end, and what it is waited for there. Nothing, if it is for the other side to do something: an end that has gone would be told again and again.
    pub fn waits(&self, socket: &Socket<'_>) -> Option<(&TcpStream, PollFlags)> {
        let stream = self.stream.as_ref()?;
        let mut flags = PollFlags::empty();
        flags.set(PollFlags::POLLIN, !self.has_read_all && socket.can_send());
        flags.set(PollFlags::POLLOUT, socket.can_recv());
        (!flags.is_empty()).then_some((stream, flags))
    }

    /// Whether this machine's end is still open.
    pub const fn is_open(&self) -> bool {
        self.stream.is_some()
    }
}

/// The line is gone, and the other machine with it.
impl Drop for Carried {
    fn drop(&mut self) {
        self.stream.iter().for_each(reset);
    }
}

/// Has whoever is connected learn that it was no ordinary end, once this is dropped.
fn reset(stream: &TcpStream) {
    // If it cannot be had, it looks like one.
    let _ = setsockopt(stream, sockopt::Linger, &libc::linger { l_onoff: 1, l_linger: 0 });
}
