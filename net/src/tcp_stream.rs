//! A connection: a half to read from, and one to write to.
//!
//! Each half has one buffer that goes to the network's process and comes back. A read or write that somebody gives up waiting for is kept here, so
//! nothing is lost or doubled: the next one goes on with it.

use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::net::SocketAddrV4;
use core::task::{Context, Poll, ready};

use magpie::sched::ProcessRef;

use crate::buffers::zeroed;
use crate::command::{Command, Connection, Desk, Half, Outcome};
use crate::error::Error;
use crate::holder::Holder;
use crate::pending::Pending;

/// A connection. Dropped, it is closed: what was written goes out, what comes is refused. When its process crashes it is reset.
///
/// ```
/// use magpie_net::{Error, TcpStream};
/// /// Sends back what comes, until nothing more does.
/// async fn echo(mut stream: TcpStream) -> Result<(), Error> {
///     let mut bytes = [0; 1024];
///     loop {
///         let count = stream.read(&mut bytes).await?;
///         if count == 0 {
///             return stream.close().await;
///         }
///         stream.write_all(&bytes[..count]).await?;
///     }
/// }
/// ```
#[derive(Debug)]
pub struct TcpStream {
    read: ReadHalf,
    write: WriteHalf,
    local: SocketAddrV4,
    remote: SocketAddrV4,
}

/// The half of a connection that is read from.
pub struct ReadHalf {
    holder: Holder,
    pending: Pending,
    /// What has come, and how much of it was read; or room, when that is all.
    buffer: Vec<u8>,
    done: usize,
    bytes: usize,
    has_ended: bool,
}

/// The half of a connection that is written to.
pub struct WriteHalf {
    holder: Holder,
    pending: Pending,
    buffer: Vec<u8>,
    bytes: usize,
    is_shut: bool,
}

impl TcpStream {
    pub(crate) fn new(
        desk: &Desk,
        connection: Connection,
        bytes: (usize, usize),
        by: &Option<ProcessRef>,
    ) -> Self {
        let Connection { id, local, remote, read, write } = connection;
        let read = ReadHalf {
            holder: Holder::new(id, Half::Read, desk.clone(), read, by.clone()),
            pending: Pending::default(),
            buffer: Vec::new(),
            done: 0,
            bytes: bytes.0,
            has_ended: false,
        };
        let write = WriteHalf {
            holder: Holder::new(id, Half::Write, desk.clone(), write, by.clone()),
            pending: Pending::default(),
            buffer: Vec::new(),
            bytes: bytes.1,
            is_shut: false,
        };
        Self { read, write, local, remote }
    }

    /// This side's address.
    pub const fn local(&self) -> SocketAddrV4 {
        self.local
    }

    /// The other side's.
    pub const fn remote(&self) -> SocketAddrV4 {
        self.remote
    }

    /// As [`ReadHalf::read`].
    ///
    /// # Errors
    /// As there.
    pub async fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        self.read.read(into).await
    }

    /// As [`ReadHalf::read_exact`].
    ///
    /// # Errors
    /// As there.
    pub async fn read_exact(&mut self, into: &mut [u8]) -> Result<(), Error> {
        self.read.read_exact(into).await
    }

    /// As [`WriteHalf::write`].
    ///
    /// # Errors
    /// As there.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        self.write.write(bytes).await
    }

    /// As [`WriteHalf::write_all`].
    ///
    /// # Errors
    /// As there.
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.write.write_all(bytes).await
    }

    /// As [`WriteHalf::shutdown`].
    ///
    /// # Errors
    /// As there.
    pub async fn shutdown(&mut self) -> Result<(), Error> {
        self.write.shutdown().await
    }

    /// As [`WriteHalf::close`].
    ///
    /// # Errors
    /// As there.
    pub async fn close(self) -> Result<(), Error> {
        self.write.close().await
    }

    /// Ends the connection at once: the other side is told by a reset, and what was not sent yet is lost.
    pub fn abort(self) {
        let command = Command::Abort { id: self.read.holder.id() };
        // Nobody waits for it. If it cannot be sent, the connection is closed as any that is dropped.
        let _ = self.read.holder.desk().try_ask(command).map(drop);
    }

    /// Its halves, for two processes.
    pub fn split(self) -> (ReadHalf, WriteHalf) {
        (self.read, self.write)
    }
}

impl ReadHalf {
    /// Waits for bytes, and reads as many as have come and as there is room for; none when the other side has closed the connection. As long as nobody reads, the
    /// other side is not given more room than the connection's buffer.
    ///
    /// # Errors
    /// When the connection was reset before all was read, and without memory.
    pub async fn read(&mut self, into: &mut [u8]) -> Result<usize, Error> {
        poll_fn(|context| self.poll_read(context, into)).await
    }

    /// Reads until `into` is full.
    ///
    /// # Errors
    /// As for [`ReadHalf::read`], and [`Error::Closed`] when the other side has said less. What was read until then, or until this is given up, is lost.
    pub async fn read_exact(&mut self, into: &mut [u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < into.len() {
            match self.read(&mut into[done..]).await? {
                0 => return Err(Error::Closed),
                count => done += count,
            }
        }
        Ok(())
    }

    /// As [`ReadHalf::read`], for who waits for several things at once: with other room at the next call, if that is what there is then.
    ///
    /// # Errors
    /// As there.
    pub fn poll_read(&mut self, context: &mut Context<'_>, into: &mut [u8]) -> Poll<Result<usize, Error>> {
        self.holder.note();
        if into.is_empty() {
            return Poll::Ready(Ok(0));
        }
        while self.done == self.buffer.len() {
            if self.has_ended {
                return Poll::Ready(Ok(0));
            }
            if !self.pending.is_under_way() {
                let mut buffer = core::mem::take(&mut self.buffer);
                self.done = 0;
                if buffer.capacity() == 0 {
                    buffer = zeroed(self.bytes)?;
                } else {
                    buffer.resize(self.bytes, 0);
                }
                let command = Command::Read { id: self.holder.id(), buffer };
                self.pending.start(self.holder.desk(), command)?;
            }
            let Outcome::Buffer(buffer) = ready!(self.pending.poll(context))? else {
                return Poll::Ready(Err(Error::Stopped));
            };
            self.has_ended = buffer.is_empty();
            self.buffer = buffer;
        }
        let rest = &self.buffer[self.done..];
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.done += count;
        Poll::Ready(Ok(count))
    }
}

impl WriteHalf {
    /// Waits until what was written before has gone into the connection's buffer, and writes as much as there is room for. So an error may be that of
    /// the write before.
    ///
    /// # Errors
    /// When the connection was reset, or shut down by this side, and without memory.
    pub async fn write(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        poll_fn(|context| self.poll_write(context, bytes)).await
    }

    /// Writes all.
    ///
    /// # Errors
    /// As for [`WriteHalf::write`]. How much was written until then, or until this is given up, is not known.
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), Error> {
        let mut done = 0;
        while done < bytes.len() {
            done += self.write(&bytes[done..]).await?;
        }
        Ok(())
    }

    /// Says that no more will be written. The other side reads the end after all that was written.
    ///
    /// # Errors
    /// As for [`WriteHalf::write`].
    pub async fn shutdown(&mut self) -> Result<(), Error> {
        self.end(false).await
    }

    /// The same, and waits until the other side has all, and this end of it.
    ///
    /// # Errors
    /// As for [`WriteHalf::write`].
    pub async fn close(mut self) -> Result<(), Error> {
        self.end(true).await
    }

    async fn end(&mut self, waits: bool) -> Result<(), Error> {
        self.holder.note();
        poll_fn(|context| self.poll_done(context)).await?;
        self.is_shut = true;
        let command = Command::Shutdown { id: self.holder.id(), waits };
        self.pending.start(self.holder.desk(), command)?;
        poll_fn(|context| self.poll_done(context)).await
    }

    /// What is under way was done.
    fn poll_done(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if !self.pending.is_under_way() {
            return Poll::Ready(Ok(()));
        }
        if let Outcome::Buffer(buffer) = ready!(self.pending.poll(context))? {
            self.buffer = buffer;
        }
        Poll::Ready(Ok(()))
    }

    /// As [`WriteHalf::write`], for who waits for several things at once. Until it is ready nothing of `bytes` was taken, so the next call may have others.
    ///
    /// # Errors
    /// As there.
    pub fn poll_write(&mut self, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize, Error>> {
        self.holder.note();
        ready!(self.poll_done(context))?;
        if self.is_shut {
            return Poll::Ready(Err(Error::Closed));
        }
        if bytes.is_empty() {
            return Poll::Ready(Ok(0));
        }
        let count = bytes.len().min(self.bytes);
        let mut data = core::mem::take(&mut self.buffer);
        data.clear();
        data.try_reserve_exact(count).map_err(|_| Error::OutOfMemory)?;
        data.extend_from_slice(&bytes[..count]);
        let command = Command::Write { id: self.holder.id(), data };
        self.pending.start(self.holder.desk(), command)?;
        // It is under way from now on, whoever waits for it.
        if let Poll::Ready(done) = self.poll_done(context) {
            done?;
        }
        Poll::Ready(Ok(count))
    }
}

impl fmt::Debug for ReadHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ReadHalf({} bytes at hand)", self.buffer.len() - self.done)
    }
}

impl fmt::Debug for WriteHalf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_shut { "WriteHalf(shut)" } else { "WriteHalf" })
    }
}
