//! A socket for datagrams.

use alloc::vec::Vec;
use core::fmt;
use core::future::poll_fn;
use core::net::SocketAddrV4;
use core::task::ready;

use crate::buffers::zeroed;
use crate::command::{Command, Outcome};
use crate::error::Error;
use crate::frame::FRAME_BYTES;
use crate::holder::Holder;
use crate::pending::Pending;

/// Sends and receives datagrams at a port.
///
/// ```
/// use magpie_net::{Error, Network};
/// /// Sends back what comes.
/// async fn echo(network: &Network) -> Result<(), Error> {
///     let mut socket = network.bind(7, 16, 16 << 10).await?;
///     let mut bytes = [0; 1500];
///     loop {
///         let (count, from) = socket.receive_from(&mut bytes).await?;
///         socket.send_to(&bytes[..count], from).await?;
///     }
/// }
/// ```
pub struct UdpSocket {
    holder: Holder,
    sends: Pending,
    receives: Pending,
    /// A datagram's room, while it is here.
    buffer: Vec<u8>,
    port: u16,
}

impl UdpSocket {
    pub(crate) fn new(holder: Holder, port: u16) -> Self {
        Self { holder, sends: Pending::default(), receives: Pending::default(), buffer: Vec::new(), port }
    }

    /// Which port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Waits for a datagram: how long it is, and from whom. What there is no room for is cut off. Who gives up waiting loses none.
    ///
    /// # Errors
    /// Without memory, and when the network's process has ended.
    pub async fn receive_from(&mut self, into: &mut [u8]) -> Result<(usize, SocketAddrV4), Error> {
        self.holder.note();
        if !self.receives.is_under_way() {
            let mut buffer = core::mem::take(&mut self.buffer);
            if buffer.capacity() == 0 {
                buffer = zeroed(FRAME_BYTES)?;
            } else {
                buffer.resize(FRAME_BYTES, 0);
            }
            let command = Command::ReceiveFrom { id: self.holder.id(), buffer };
            self.receives.start(self.holder.desk(), command)?;
        }
        match poll_fn(|context| self.receives.poll(context)).await? {
            Outcome::Datagram { from, buffer } => {
                let count = buffer.len().min(into.len());
                into[..count].copy_from_slice(&buffer[..count]);
                self.buffer = buffer;
                Ok((count, from))
            }
            _ => Err(Error::Stopped),
        }
    }

    /// Sends a datagram, once there is room for it. It may be lost on its way, as all may.
    ///
    /// # Errors
    /// When it is longer than the socket's room, or cannot be sent there, and without memory.
    pub async fn send_to(&mut self, bytes: &[u8], to: SocketAddrV4) -> Result<(), Error> {
        self.holder.note();
        // One that somebody gave up waiting for.
        poll_fn(|context| {
            if self.sends.is_under_way() {
                let _ = ready!(self.sends.poll(context));
            }
            core::task::Poll::Ready(())
        })
        .await;
        let mut data = Vec::new();
        data.try_reserve_exact(bytes.len()).map_err(|_| Error::OutOfMemory)?;
        data.extend_from_slice(bytes);
        let command = Command::SendTo { id: self.holder.id(), to, data };
        self.sends.start(self.holder.desk(), command)?;
        poll_fn(|context| self.sends.poll(context)).await.map(drop)
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UdpSocket(port {})", self.port)
    }
}
