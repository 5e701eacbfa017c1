//! What came in and was not yet made anything of, and what is to go out.

use alloc::vec::Vec;

use super::error::SendError;

/// What is read into at first, and from when the nodes are connected.
const FIRST: usize = 512;
const USUAL: usize = 16 << 10;
/// What is more than this, is given back when nothing is in it.
const MUCH: usize = 64 << 10;

/// What came in.
#[derive(Debug)]
pub struct Input {
    /// All of it may be written to; what was written lies between the two.
    pub bytes: Vec<u8>,
    pub start: usize,
    pub end: usize,
}

impl Input {
    pub const fn new() -> Self {
        Self { bytes: Vec::new(), start: 0, end: 0 }
    }

    pub fn filled(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    /// Makes room behind what is there, for a frame that has so many bytes with its length. What is announced is not yet worth memory: what is there at most
    /// doubles what there was.
    pub fn reserve(&mut self, frame: usize, is_up: bool) -> Result<(), SendError> {
        let usual = if is_up { USUAL } else { FIRST };
        let count = self.end - self.start;
        if count == 0 {
            (self.start, self.end) = (0, 0);
            if self.bytes.len() > MUCH && frame <= USUAL {
                self.bytes = Vec::new();
            }
        }
        if self.bytes.len() < usual {
            return self.grow(usual);
        }
        // Does the rest of the frame fit, or at least something that is worth a read?
        if self.end == self.bytes.len() || self.start + frame > self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, count);
            if count == self.bytes.len() {
                return self.grow(frame.clamp(usual, self.bytes.len() * 2));
            }
        }
        Ok(())
    }

    fn grow(&mut self, to: usize) -> Result<(), SendError> {
        let more = to.saturating_sub(self.bytes.len());
        self.bytes.try_reserve_exact(more).map_err(|_| SendError::OutOfMemory)?;
        self.bytes.resize(to, 0);
        Ok(())
    }
}

/// What is to go out.
#[derive(Debug)]
pub struct Output {
    bytes: Vec<u8>,
    /// What lies before is gone.
    start: usize,
    limit: usize,
}

impl Output {
    pub const fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), start: 0, limit }
    }

    pub fn waiting(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    pub const fn count(&self) -> usize {
        self.bytes.len() - self.start
    }

    pub const fn room(&self) -> usize {
        self.limit.saturating_sub(self.count())
    }

    pub fn sent(&mut self, count: usize) {
        self.start = (self.start + count).min(self.bytes.len());
        if self.start == self.bytes.len() {
            self.start = 0;
            if self.bytes.capacity() > MUCH {
                self.bytes = Vec::new();
            }
            self.bytes.clear();
        }
    }

    /// Appends what this writes into a buffer up to a length, with so much of the limit left alone; nothing, if it says an error.
    pub fn write<T, E>(
        &mut self,
        spare: usize,
        write: impl FnOnce(&mut Vec<u8>, usize) -> Result<T, E>,
    ) -> Result<T, E> {
        if self.start > 0 && self.start >= self.bytes.len() / 2 {
            self.bytes.drain(..self.start);
            self.start = 0;
        }
        let end = self.bytes.len();
        let limit = self.start.saturating_add(self.limit.saturating_sub(spare));
        let written = write(&mut self.bytes, limit);
        if written.is_err() {
            self.bytes.truncate(end);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::{Input, Output};

    #[test]
    fn input_grows_as_bytes_come_and_shrinks_again() {
        let mut input = Input::new();
        let frame = 1 << 20;
        let mut got = 0;
        while got < frame {
            input.reserve(frame, true).unwrap();
            let room = input.bytes.len() - input.end;
            assert!(room > 0 && input.bytes.len() <= (got * 2).max(16 << 10));
            input.end += room;
            got += room;
        }
        assert_eq!((got, input.filled().len()), (frame, frame));
        input.start = input.end;
        input.reserve(4, true).unwrap();
        assert_eq!(input.bytes.len(), 16 << 10);
        // What is left of the next frame is moved when its rest would not fit.
        (input.start, input.end) = (16_000, 16_384);
        input.reserve(500, true).unwrap();
        assert_eq!((input.start, input.end), (0, 384));
    }

    #[test]
    fn output_keeps_its_limit_and_forgets_what_failed() {
        let mut output = Output::new(100);
        let put = |output: &mut Output, count: usize| {
            output.write(0, |bytes, limit| {
                let fits = bytes.len() + count <= limit;
                bytes.extend_from_slice(&[7; 100][..count]);
                if fits { Ok(()) } else { Err(()) }
            })
        };
        assert_eq!(put(&mut output, 60), Ok(()));
        assert_eq!(put(&mut output, 41), Err(()));
        assert_eq!((output.count(), output.room()), (60, 40));
        output.sent(30);
        assert_eq!(put(&mut output, 70), Ok(()));
        assert_eq!((output.count(), output.room()), (100, 0));
        output.sent(100);
        assert_eq!((output.count(), output.waiting().len()), (0, 0));
    }
}
