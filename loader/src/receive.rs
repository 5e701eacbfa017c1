//! Receiving a kernel: the loader's half of the protocol. It is told each byte and the time, and does no waiting itself.

use crate::crc::Crc;
use crate::frame::{CHECKSUM_BYTES, FRAME_BYTES, HEADER_BYTES, Header, Kernel, begins};
use crate::report::Report;
use core::fmt::Write;

/// What the receiver needs of the board.
pub trait Board: Write {
    /// The longest kernel that there is room for, in bytes.
    const MOST_BYTES: u32;
    /// Makes the place ready for this many bytes.
    fn prepare(&mut self, bytes: u32);
    /// Writes a byte of the kernel.
    fn put(&mut self, offset: u32, byte: u8);
    /// Reads a byte of the kernel that was written.
    fn get(&mut self, offset: u32) -> u8;
}

/// A frame of which nothing more comes for this long has lost bytes. The host waits for longer before it sends it
/// again.
const PAUSE_SECONDS: u64 = 2;

/// The state of one line.
///
/// What has arrived of a kernel is kept until another kernel is offered, whatever else comes or does not come, so that
/// the host may go on where it, or another run of it, has stopped.
pub struct Receiver {
    /// Ticks of the clock in a second.
    second: u64,
    /// The frame that is arriving.
    frame: [u8; FRAME_BYTES],
    filled: usize,
    /// Its header, once that is whole.
    header: Option<Header>,
    /// The checksum of its part so far.
    sum: Crc,
    /// When the last byte was received, and when the last line was sent.
    heard: u64,
    said: u64,
    taking: Option<Taking>,
}

/// A kernel that is arriving.
struct Taking {
    kernel: Kernel,
    /// Its bytes up to here are in their place.
    place: u32,
    /// The checksum of these bytes, as they were read back.
    sum: Crc,
}

/// What a byte completes in the frame.
enum Frame {
    /// More bytes must come.
    More,
    /// The frame is whole.
    Whole(Header),
    /// The header is whole, the part is damaged.
    Damaged(Header),
    /// It was not a frame.
    Noise,
}

impl Receiver {
    /// For a clock with this many ticks in a second.
    pub const fn new(second: u64) -> Self {
        Self {
            second,
            frame: [0; FRAME_BYTES],
            filled: 0,
            header: None,
            sum: Crc::new(),
            heard: 0,
            said: 0,
            taking: None,
        }
    }

    /// A byte has come. Returns the kernel's length when it is whole and to be started.
    pub fn heard(&mut self, byte: u8, now: u64, board: &mut impl Board) -> Option<u32> {
        self.heard = now;
        let (header, is_whole) = match self.collect(byte) {
            Frame::Whole(header) => (header, true),
            Frame::Damaged(header) => (header, false),
            Frame::More | Frame::Noise => return None,
        };
        let started = self.answer(header, is_whole, board);
        self.drop_frame();
        self.said = now;
        started
    }

    /// Time passes: reports progress, once a second, but not in the middle of a frame. Sending takes longer than the
    /// port can keep what comes meanwhile.
    pub fn tick(&mut self, now: u64, board: &mut impl Board) {
        if now.saturating_sub(self.heard) >= PAUSE_SECONDS * self.second {
            self.drop_frame();
        }
        if self.header.is_none() && now.saturating_sub(self.said) >= self.second {
            self.announce(now, board);
        }
    }

    /// Reports progress.
    pub fn announce(&mut self, now: u64, board: &mut impl Board) {
        self.said = now;
        say(board, self.state(None));
    }

    fn state(&self, number: Option<u32>) -> Report {
        match &self.taking {
            Some(taking) => Report::At { place: taking.place, kernel: taking.kernel, number },
            None => Report::Ready,
        }
    }

    fn drop_frame(&mut self) {
        self.filled = 0;
        self.header = None;
    }

    /// Adds a byte to the frame. What turns out not to be a frame is searched for the beginning of another: it may be a
    /// frame that lost bytes, with the next behind it.
    fn collect(&mut self, byte: u8) -> Frame {
        self.frame[self.filled] = byte;
        let mut end = self.filled + 1;
        loop {
            let mut found = Frame::More;
            while self.filled < end && matches!(found, Frame::More) {
                found = self.add_next();
            }
            if !matches!(found, Frame::Noise) {
                return found;
            }
            let next = (1..end).find(|&at| begins(&self.frame[at..end])).unwrap_or(end);
            self.frame.copy_within(next..end, 0);
            end -= next;
            self.drop_frame();
        }
    }

    /// Looks at the next byte of the frame.
    fn add_next(&mut self) -> Frame {
        let byte = self.frame[self.filled];
        self.filled += 1;
        let Some(header) = self.header else {
            let Some(header) = self.frame[..self.filled].first_chunk::<HEADER_BYTES>() else {
                let known = begins(&self.frame[..self.filled]);
                return if known { Frame::More } else { Frame::Noise };
            };
            self.header = Header::from_bytes(header);
            self.sum = Crc::new();
            return if self.header.is_some() { Frame::More } else { Frame::Noise };
        };
        let end = HEADER_BYTES + header.count as usize;
        if self.filled <= end {
            self.sum.add(byte);
        }
        if self.filled < end + CHECKSUM_BYTES {
            return Frame::More;
        }
        let is_whole = self.frame[end..end + CHECKSUM_BYTES] == self.sum.value().to_le_bytes();
        if is_whole { Frame::Whole(header) } else { Frame::Damaged(header) }
    }

    /// Does what a frame asks, and answers it.
    fn answer<B: Board>(&mut self, header: Header, is_whole: bool, board: &mut B) -> Option<u32> {
        let kernel = header.kernel;
        if kernel.length == 0 || kernel.length > B::MOST_BYTES {
            say(board, Report::Refuses { most: B::MOST_BYTES });
            return None;
        }
        let taking = match &mut self.taking {
            Some(taking) if taking.kernel == kernel => taking,
            other => {
                board.prepare(kernel.length);
                other.insert(Taking { kernel, place: 0, sum: Crc::new() })
            }
        };
        // Any other part is one that the receiver has already, or that comes too early.
        if is_whole && header.offset == taking.place {
            if taking.place == kernel.length {
                say(board, Report::Go);
                return Some(kernel.length);
            }
            let part = &self.frame[HEADER_BYTES..HEADER_BYTES + header.count as usize];
            for (&byte, offset) in part.iter().zip(taking.place..) {
                board.put(offset, byte);
                taking.sum.add(board.get(offset));
            }
            taking.place += header.count;
        }
        // Every part was right but the whole is not: memory has not kept it, or the beginning is another kernel's.
        if taking.place == kernel.length && taking.sum.value() != kernel.checksum {
            *taking = Taking { kernel, place: 0, sum: Crc::new() };
        }
        say(board, self.state(Some(header.number)));
        None
    }
}

fn say(board: &mut impl Board, report: Report) {
    // Sending cannot fail on a board.
    let _ = writeln!(board, "{report}");
}
