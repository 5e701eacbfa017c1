//! A console of virtio: a line to the machine's owner that takes no interrupt for each byte, beside the serial line.

use crate::DriverError;
use crate::virtio::{Device, Kind};

/// Descriptors of a queue, and requests: one each.
const DESCRIPTORS: usize = 8;
/// How many bytes go at a time.
const PIECE_BYTES: usize = 512;
/// The rings of the first port, by their numbers in the standard (virtio 1.3, 5.3).
const RECEIVE: usize = 0;
const SEND: usize = 1;

/// A console that this process drives: bytes each way. What nobody reads waits in its eight pieces of 512 bytes, and then at the machine's owner.
///
/// ```
/// use magpie_drivers::DriverError;
/// use magpie_drivers::console::Console;
///
/// /// Says what it hears.
/// async fn echo() -> Result<(), DriverError> {
///     let mut console = Console::open().await?;
///     let mut bytes = [0; 64];
///     loop {
///         let count = console.read(&mut bytes).await?;
///         console.write_all(&bytes[..count]).await?;
///     }
/// }
/// # let _ = echo();
/// ```
pub struct Console {
    device: Device<DESCRIPTORS>,
    /// A slot in which something has come, how long it is, and how much of it was read.
    come: Option<(usize, usize, usize)>,
    /// Slots for sending that are with the device.
    sending: [bool; DESCRIPTORS],
}

impl Console {
    /// Takes the first console that nobody drives. It is this process's, and ends with it.
    ///
    /// # Errors
    /// There is none, or it cannot be driven.
    pub async fn open() -> Result<Self, DriverError> {
        let mut device = Device::open(Kind::Console, 0).await?;
        device.add_ring(DESCRIPTORS, PIECE_BYTES)?;
        device.add_ring(DESCRIPTORS, PIECE_BYTES)?;
        device.start();
        let mut console = Self { device, come: None, sending: [false; DESCRIPTORS] };
        for slot in 0..DESCRIPTORS {
            console.listen(slot)?;
        }
        Ok(console)
    }

    /// Waits for bytes, and reads as many as have come and as there is room for. Who gives up waiting loses none.
    ///
    /// # Errors
    /// The device says what cannot be, or is not this process's any more.
    pub async fn read(&mut self, into: &mut [u8]) -> Result<usize, DriverError> {
        if into.is_empty() {
            return Ok(0);
        }
        loop {
            if let Some((slot, length, done)) = self.come {
                let count = into.len().min(length - done);
                self.device.ring(RECEIVE).read(slot, done, &mut into[..count]);
                self.come = Some((slot, length, done + count));
                if done + count == length {
                    self.come = None;
                    self.listen(slot)?;
                }
                if count > 0 {
                    return Ok(count);
                }
            } else if let Some((slot, length)) = self.device.completed(RECEIVE)? {
                self.come = Some((slot, length, 0));
            } else {
                self.device.interrupted().await?;
            }
        }
    }

    /// Writes all, and waits until the device has it. Where nobody listens it is lost, as with any line. Who gives up waiting does not know how much was written.
    ///
    /// # Errors
    /// As for [`Console::read`].
    pub async fn write_all(&mut self, bytes: &[u8]) -> Result<(), DriverError> {
        for piece in bytes.chunks(PIECE_BYTES) {
            let slot = loop {
                match self.sending.iter().position(|is_sent| !is_sent) {
                    Some(slot) => break slot,
                    None => self.sent().await?,
                }
            };
            self.device.ring(SEND).write(slot, 0, piece);
            if !self.device.submit(SEND, slot, [0..piece.len(), 0..0], [0..0, 0..0]) {
                return Err(DriverError::Faulty("its queue is full before its slots are"));
            }
            self.sending[slot] = true;
        }
        while self.sending.contains(&true) {
            self.sent().await?;
        }
        Ok(())
    }

    /// Waits until one more was sent.
    async fn sent(&mut self) -> Result<(), DriverError> {
        loop {
            if let Some((slot, _)) = self.device.completed(SEND)? {
                let sent = self.sending.get_mut(slot).filter(|is_sent| **is_sent);
                *sent.ok_or(DriverError::Faulty("it has done what it was not asked"))? = false;
                return Ok(());
            }
            self.device.interrupted().await?;
        }
    }

    /// Gives the device a slot for what comes.
    fn listen(&mut self, slot: usize) -> Result<(), DriverError> {
        match self.device.submit(RECEIVE, slot, [0..0, 0..0], [0..PIECE_BYTES, 0..0]) {
            true => Ok(()),
            false => Err(DriverError::Faulty("its queue is full before its slots are")),
        }
    }
}
