//! The defmt transport: log frames, each encoded into its core's buffer and written in one piece.
//!
//! Preemption is off and interrupts are masked from a frame's first byte to its last, so a core has one
//! frame at a time and its buffer needs no lock. A frame that is longer than the buffer is dropped whole
//! and said to be: half a frame would be decoded as nonsense.

use core::cell::UnsafeCell;

use defmt::Encoder;

use super::console;
use crate::arch::{MAX_CORES, clock, irq, percpu};

/// Bytes of the longest frame.
const FRAME_BYTES: usize = 512;

struct Buffer {
    bytes: [u8; FRAME_BYTES],
    length: usize,
    encoder: Encoder,
    too_long: bool,
    /// The interrupt mask to restore when the frame is complete.
    mask: u64,
}

struct Slot(UnsafeCell<Buffer>);

// SAFETY: a slot is used by its core alone, with preemption off and interrupts masked.
unsafe impl Sync for Slot {}

static SLOTS: [Slot; MAX_CORES] = [const {
    Slot(UnsafeCell::new(Buffer {
        bytes: [0; FRAME_BYTES],
        length: 0,
        encoder: Encoder::new(),
        too_long: false,
        mask: 0,
    }))
}; MAX_CORES];

fn with_own<R>(body: impl FnOnce(&mut Buffer) -> R) -> R {
    // SAFETY: the caller has interrupts masked (see `acquire`), so this code stays on its core and is not
    // re-entered.
    body(unsafe { &mut *SLOTS[percpu::core_number()].0.get() })
}

impl Buffer {
    fn push(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.too_long = true,
        }
    }
}

#[defmt::global_logger]
struct Logger;

// SAFETY: `acquire` masks interrupts until `release`, so calls nest properly and stay on one core; the
// buffer between them is that core's own.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        let mask = irq::mask();
        with_own(|buffer| {
            buffer.mask = mask;
            buffer.length = 0;
            buffer.too_long = false;
            let mut encoder = core::mem::replace(&mut buffer.encoder, Encoder::new());
            encoder.start_frame(|bytes| buffer.push(bytes));
            buffer.encoder = encoder;
        });
    }

    unsafe fn flush() {}

    unsafe fn release() {
        let mask = with_own(|buffer| {
            let mut encoder = core::mem::replace(&mut buffer.encoder, Encoder::new());
            encoder.end_frame(|bytes| buffer.push(bytes));
            if buffer.too_long {
                console::bytes(&[b"a log frame was too long and was dropped\n"]);
            } else {
                let frame = &buffer.bytes[..buffer.length];
                // The encoder puts delimiters around the frame; the line's format has its own.
                let frame = frame.strip_prefix(&[0]).unwrap_or(frame);
                let frame = frame.strip_suffix(&[0]).unwrap_or(frame);
                console::bytes(&[&[0, 1], frame, &[0]]);
            }
            buffer.mask
        });
        irq::restore(mask);
    }

    unsafe fn write(bytes: &[u8]) {
        with_own(|buffer| {
            let mut encoder = core::mem::replace(&mut buffer.encoder, Encoder::new());
            encoder.write(bytes, |bytes| buffer.push(bytes));
            buffer.encoder = encoder;
        });
    }
}

defmt::timestamp!(
    "{=u64:us} c{=u8}",
    clock::now() / (clock::frequency() / 1_000_000).max(1),
    percpu::core_number() as u8
);
