//! A frame of Ethernet, in memory that goes with it from hand to hand.

use alloc::vec::Vec;
use core::fmt;

use magpie::mem::OutOfMemory;

/// The longest frame: 14 bytes of header and 1500 of content. The check sum at its end is the card's.
pub const FRAME_BYTES: usize = 1514;

/// Room for one frame, and how much of it is used. Moving it moves a pointer.
///
/// ```
/// use magpie_net::{FRAME_BYTES, Frame};
/// let mut frame = Frame::new()?;
/// assert_eq!((frame.bytes().len(), frame.room().len()), (0, FRAME_BYTES));
/// frame.room()[..3].copy_from_slice(&[1, 2, 3]);
/// frame.set_length(3);
/// assert_eq!(frame.bytes(), [1, 2, 3]);
/// frame.bytes_mut()[0] = 0;
/// frame.set_length(2);
/// assert_eq!(frame.bytes(), [0, 2]);
/// # Ok::<(), magpie::mem::OutOfMemory>(())
/// ```
pub struct Frame {
    /// As long as the longest.
    room: Vec<u8>,
    length: usize,
}

impl Frame {
    /// An empty frame.
    ///
    /// # Errors
    /// Without memory for it.
    pub fn new() -> Result<Self, OutOfMemory> {
        Ok(Self { room: crate::buffers::zeroed(FRAME_BYTES)?, length: 0 })
    }

    /// So many empty frames.
    pub(crate) fn several(count: usize) -> Result<Vec<Self>, OutOfMemory> {
        let mut frames = Vec::new();
        frames.try_reserve_exact(count).map_err(|_| OutOfMemory)?;
        for _ in 0..count {
            frames.push(Self::new()?);
        }
        Ok(frames)
    }

    /// What is in it.
    pub fn bytes(&self) -> &[u8] {
        &self.room[..self.length]
    }

    /// The same, to be changed.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.room[..self.length]
    }

    /// All its room, used or not.
    pub fn room(&mut self) -> &mut [u8] {
        &mut self.room
    }

    /// Says how much of it is used: [`FRAME_BYTES`] at most.
    pub fn set_length(&mut self, length: usize) {
        self.length = length.min(FRAME_BYTES);
    }
}

impl fmt::Debug for Frame {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Frame({} bytes)", self.length)
    }
}
