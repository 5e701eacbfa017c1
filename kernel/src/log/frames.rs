//! The defmt transport: log frames, each encoded into a buffer and written in one piece.
//!
//! Between a frame's first byte and its last the application's `Format` runs, which may take long, and may crash: nothing is
//! masked or locked meanwhile. A frame belongs to the stack that it is made on, wherever that goes. It has one of a few
//! buffers for that time, and a crash gives the buffer back. If all of them are in use, by frames that were preempted,
//! a frame is dropped. So is one that is begun within another, and one that is longer than the buffer, because half a
//! frame would be decoded as nonsense. How many were dropped is reported with the next one; for one that is too long,
//! how long it is and where its format is.

use core::cell::UnsafeCell;

use defmt::Encoder;

use super::console;
use crate::arch::atomic::{AtomicU32, AtomicUsize, Ordering};
use crate::arch::{MAX_CORES, clock, percpu};
use crate::sync::PreemptGuard;

/// Bytes of the longest frame, as it goes over the line. docs/architecture.md names it.
const FRAME_BYTES: usize = 512;
/// Frames that can be made at a time: one on each core, and as many that were preempted.
const SLOTS: usize = 2 * MAX_CORES;
/// Owned by no stack.
const FREE: usize = 0;

struct Buffer {
    bytes: [u8; FRAME_BYTES],
    length: usize,
    encoder: Encoder,
    /// Bytes for which there was no room.
    missing: usize,
    /// The number of its format, which comes first, as far as it has been written.
    format: [u8; 2],
    format_bytes: usize,
    /// Frames that were begun within this one, and are dropped.
    within: u32,
}

struct Slot {
    /// Which stack's frame is made here: the address of a stack's block.
    owner: AtomicUsize,
    buffer: UnsafeCell<Buffer>,
}

// SAFETY: a buffer is used by the code on the stack that owns the slot, which is one piece of code at a time.
unsafe impl Sync for Slot {}

static FRAMES: [Slot; SLOTS] = [const {
    Slot {
        owner: AtomicUsize::new(FREE),
        buffer: UnsafeCell::new(Buffer {
            bytes: [0; FRAME_BYTES],
            length: 0,
            encoder: Encoder::new(),
            missing: 0,
            format: [0; 2],
            format_bytes: 0,
            within: 0,
        }),
    }
}; SLOTS];

/// Frames that were dropped and not yet reported.
static DROPPED: AtomicU32 = AtomicU32::new(0);

/// The stack that the caller runs on.
fn this_stack() -> usize {
    percpu::stack_block() as usize
}

/// All slots, first the one that the stack would take.
fn slots_for(stack: usize) -> impl Iterator<Item = &'static Slot> {
    // Stacks lie this far apart.
    let first = stack / crate::arch::stack_layout::slot_bytes();
    (0..SLOTS).map(move |offset| &FRAMES[(first + offset) % SLOTS])
}

/// The slot that the stack has, if it makes a frame.
fn own(stack: usize) -> Option<&'static Slot> {
    // Relaxed: written by this stack's own code.
    slots_for(stack).find(|slot| slot.owner.load(Ordering::Relaxed) == stack)
}

/// Uses the buffer of the frame that is made on this stack; nothing if that was dropped, or is one within another.
fn with_own<R>(body: impl FnOnce(&mut Buffer) -> R) -> Option<R> {
    let slot = own(this_stack())?;
    // SAFETY: the slot is this stack's, whose code is here, and in no other use of it: what `body` calls makes no frame.
    Some(body(unsafe { &mut *slot.buffer.get() }))
}

/// The code on the stack with this block has crashed: the frame that it was making, if any, is dropped.
pub(crate) fn dropped_with(stack: *const ()) {
    if let Some(slot) = own(stack as usize) {
        // Release: pairs with the acquire in `begin`.
        slot.owner.store(FREE, Ordering::Release);
    }
}

/// Begins a frame on this stack.
fn begin() {
    let stack = this_stack();
    if with_own(|buffer| buffer.within += 1).is_some() {
        return;
    }
    // Acquire: pairs with the release of the last owner.
    let take =
        |slot: &&Slot| slot.owner.compare_exchange(FREE, stack, Ordering::Acquire, Ordering::Relaxed).is_ok();
    if slots_for(stack).find(take).is_none() {
        // Relaxed: a count.
        DROPPED.fetch_add(1, Ordering::Relaxed);
        return;
    }
    with_own(|buffer| {
        buffer.length = 0;
        buffer.missing = 0;
        buffer.format_bytes = 0;
        buffer.within = 0;
        buffer.encode(|encoder, push| encoder.start_frame(push));
    });
}

/// Ends the frame on this stack, and writes it.
fn end() {
    let Some(slot) = own(this_stack()) else { return };
    let ended = with_own(|buffer| {
        if buffer.within > 0 {
            buffer.within -= 1;
            // Relaxed: a count.
            DROPPED.fetch_add(1, Ordering::Relaxed);
            return false;
        }
        buffer.encode(|encoder, push| encoder.end_frame(push));
        if buffer.missing > 0 {
            console::line(format_args!(
                "a log frame of {} bytes was dropped, for {FRAME_BYTES} are the most; its format is number {}",
                buffer.length + buffer.missing,
                u16::from_le_bytes(buffer.format)
            ));
        } else {
            let frame = &buffer.bytes[..buffer.length];
            // The encoder puts delimiters around the frame; the line's format has its own.
            let frame = frame.strip_prefix(&[0]).unwrap_or(frame);
            let frame = frame.strip_suffix(&[0]).unwrap_or(frame);
            console::bytes(&[&[0, 1], frame, &[0]]);
        }
        true
    });
    if ended == Some(true) {
        // Release: pairs with the acquire in `begin`.
        slot.owner.store(FREE, Ordering::Release);
        match DROPPED.swap(0, Ordering::Relaxed) {
            0 => {}
            dropped => console::line(format_args!("{dropped} log frames were dropped")),
        }
    }
}

impl Buffer {
    fn push(&mut self, bytes: &[u8]) {
        match self.bytes.get_mut(self.length..self.length + bytes.len()) {
            Some(room) => {
                room.copy_from_slice(bytes);
                self.length += bytes.len();
            }
            None => self.missing += bytes.len(),
        }
    }

    /// Takes the part of the frame that is not encoded yet.
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes.iter().take(self.format.len() - self.format_bytes) {
            self.format[self.format_bytes] = *byte;
            self.format_bytes += 1;
        }
        self.encode(|encoder, push| encoder.write(bytes, push));
    }

    /// Lets the encoder write into the buffer.
    fn encode(&mut self, what: impl FnOnce(&mut Encoder, &mut dyn FnMut(&[u8]))) {
        let mut encoder = core::mem::replace(&mut self.encoder, Encoder::new());
        what(&mut encoder, &mut |bytes| self.push(bytes));
        self.encoder = encoder;
    }
}

#[defmt::global_logger]
struct Logger;

// SAFETY: what is written between `acquire` and `release` goes to a buffer that belongs to the stack on which both are called;
// a frame that is begun before the last one on that stack has ended is dropped.
unsafe impl defmt::Logger for Logger {
    fn acquire() {
        begin();
    }

    unsafe fn flush() {}

    unsafe fn release() {
        end();
    }

    unsafe fn write(bytes: &[u8]) {
        with_own(|buffer| {
            if buffer.within == 0 {
                buffer.write(bytes);
            }
        });
    }
}

/// The core that the caller is on; a moment later it may be another.
fn core_number() -> u8 {
    let _here = PreemptGuard::new();
    percpu::core_number() as u8
}

defmt::timestamp!(
    "{=u64:us} c{=u8}",
    (clock::now() - clock::ZERO) / (clock::frequency() / 1_000_000).max(1),
    core_number()
);
