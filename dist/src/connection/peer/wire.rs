//! What writes frames to a connection's output.

use crate::connection::buffers::Output;
use crate::connection::error::{Closed, SendError};
use crate::handshake::{Hello, LONGEST};
use crate::signal::Control;
use crate::term::{EncodeError, ToTerm};

/// So much of the output is left to what a connection answers by itself.
pub const SPARE: usize = 8 << 10;
/// An answer of that kind has no more bytes than this: three names of 255 characters at most, and a little.
pub const ANSWER: usize = 4 << 10;

/// A control message and what goes with it.
pub type Frame<'a> = (Control<'a>, Option<&'a dyn ToTerm>);

/// Where frames are written.
#[derive(Debug)]
pub struct Wire {
    pub output: Output,
    /// What both sides can.
    pub flags: u64,
    pub is_up: bool,
    /// How many frames there were.
    pub sent: u64,
}

impl Wire {
    /// Whether an answer would find room.
    pub const fn has_room(&self) -> bool {
        self.output.room() >= ANSWER
    }

    /// What a command says: all of these frames, or none.
    pub fn put(&mut self, frames: &[Frame<'_>]) -> Result<(), SendError> {
        self.write(SPARE, frames)
    }

    /// What is answered without a command.
    pub fn answer(&mut self, frame: Frame<'_>) -> Result<(), SendError> {
        self.write(0, &[frame])
    }

    fn write(&mut self, spare: usize, frames: &[Frame<'_>]) -> Result<(), SendError> {
        if !self.is_up {
            return Err(SendError::NotUp);
        }
        let (waiting, flags) = (self.output.count(), self.flags);
        let written = self.output.write(spare, |bytes, limit| {
            frames.iter().try_for_each(|(control, payload)| control.write(*payload, flags, bytes, limit))
        });
        match written {
            Ok(()) => {
                self.sent += frames.len() as u64;
                Ok(())
            }
            Err(EncodeError::TooLong) if waiting > 0 => Err(SendError::Full),
            Err(EncodeError::TooLong) => Err(SendError::TooLong),
            Err(EncodeError::OutOfMemory) => Err(SendError::OutOfMemory),
            Err(error) => Err(SendError::Encode(error)),
        }
    }
}

impl Wire {
    /// What is said before the nodes are connected.
    pub fn say(&mut self, hello: Hello<'_>) -> Result<(), Closed> {
        self.output.write(0, |bytes, _| {
            bytes.try_reserve(LONGEST + 2).map_err(|_| Closed::OutOfMemory)?;
            hello.write(bytes);
            Ok(())
        })
    }

    /// Says that this side is still there.
    pub fn tick(&mut self) -> Result<(), Closed> {
        self.output.write(0, |bytes, _| {
            bytes.try_reserve(4).map_err(|_| Closed::OutOfMemory)?;
            bytes.extend_from_slice(&[0; 4]);
            Ok(())
        })
    }
}
