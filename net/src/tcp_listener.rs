//! A port that connections come to.

use core::fmt;
use core::future::poll_fn;
use core::time::Duration;

use magpie::sched::{self, ProcessRef};
use magpie::time;

use crate::buffers::Buffers;
use crate::command::{Command, Outcome, token};
use crate::error::Error;
use crate::holder::Holder;
use crate::pending::Pending;
use crate::tcp_stream::TcpStream;

/// How long it is waited for memory, or for a place, before it is tried again.
const BETWEEN_TRIES: Duration = Duration::from_millis(10);

/// A port that connections come to. Dropped, it accepts no more: those that wait are reset.
///
/// ```
/// use magpie_net::{Error, TcpListener};
/// /// Says hello to whoever comes.
/// async fn greet(mut listener: TcpListener) -> Result<(), Error> {
///     loop {
///         let mut stream = listener.accept_or_wait().await?;
///         // Without memory for its process the connection is dropped, and so reset.
///         let _ = magpie::sched::spawn(async move {
///             stream.write_all(b"hello").await?;
///             stream.close().await
///         });
///     }
/// }
/// ```
pub struct TcpListener {
    holder: Holder,
    pending: Pending,
    /// Who has asked, and is watched.
    by: Option<ProcessRef>,
    port: u16,
    bytes: (usize, usize),
}

impl TcpListener {
    pub(crate) fn new(holder: Holder, port: u16, bytes: (usize, usize)) -> Self {
        Self { holder, pending: Pending::default(), by: None, port, bytes }
    }

    /// Which port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Waits for the next connection. The caller is charged for its buffers. Who gives up waiting loses none: the next call has it.
    /// One that is reset before this comes to it is not reported.
    ///
    /// # Errors
    /// Without memory, or a place for the next one, and when the network's process has ended. Whoever connects often enough brings about the first two, so a
    /// server does not end with them: see [`TcpListener::accept_or_wait`].
    pub async fn accept(&mut self) -> Result<TcpStream, Error> {
        self.holder.note();
        if !self.pending.is_under_way() {
            let buffers = Buffers::new(self.bytes)?;
            let tokens = (token()?, token()?);
            let (id, by) = (self.holder.id(), sched::current_process());
            self.by.clone_from(&by);
            self.pending.start(self.holder.desk(), Command::Accept { id, buffers, tokens, by })?;
        }
        match poll_fn(|context| self.pending.poll(context)).await? {
            Outcome::Connection(connection) => {
                Ok(TcpStream::new(self.holder.desk(), connection, self.bytes, &self.by))
            }
            _ => Err(Error::Stopped),
        }
    }

    /// Waits for the next connection, and as long as there is no memory or no place for it, too: for servers, which a crowd must not end.
    ///
    /// # Errors
    /// When the network's process has ended.
    pub async fn accept_or_wait(&mut self) -> Result<TcpStream, Error> {
        loop {
            match self.accept().await {
                // It has gone again; the next one may be there.
                Err(Error::Reset) => {}
                Err(Error::OutOfMemory | Error::TooMany) => time::sleep(BETWEEN_TRIES).await,
                accepted => return accepted,
            }
        }
    }
}

impl fmt::Debug for TcpListener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TcpListener(port {})", self.port)
    }
}
