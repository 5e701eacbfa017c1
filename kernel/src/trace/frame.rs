//! How events and statistics go over the serial line: binary frames beside text and log frames.
//!
//! ```text
//!   frame     00 03 <COBS of what follows> 00
//!   payload   version, kind, core: a byte each; sequence; body; checksum: Adler-32 of all before it, 4 bytes, the lowest first
//!   events    lost; number of the first; then each: kind, a byte; ticks since the one before (the first: since 0), twice, and of a negative number that less one, inverted; name; value; subject
//!   name      its number, as in events; the text
//!   values    numbers, whose meaning is their place
//!   hello     clock ticks a second; how many cores; the clock
//! ```
//!
//! Numbers are written seven bits to a byte, the lowest first, the last without its highest bit. A frame is of one core, and is written in one piece; so
//! frames of several cores do not mix. Its payload is at most `MOST_BYTES` long: on a line of 115,200 bits a second it takes 22 ms. Frames are numbered in the order
//! in which they are made, so the host tool sees which were lost; of the events each frame says how many were lost before its first.

use super::event::{Event, name_of};
use super::{Reading, ring};
use crate::arch::{CoreId, clock};
use crate::log::console;
use crate::sync::SpinLock;

/// The version of all this.
const VERSION: u8 = 1;
/// Bytes of the longest payload: with one byte more COBS has no need of a second block.
const MOST_BYTES: usize = 250;
const CHECKSUM_BYTES: usize = 4;

const EVENTS: u8 = 1;
const NAME: u8 = 2;
const VALUES: u8 = 3;
const HELLO: u8 = 4;

/// Bytes before the body at most: version, kind, core, sequence.
const HEAD_BYTES: usize = 3 + 5;

/// The number of the next frame. Held while one is written, so that they arrive in the order of their numbers.
static SEQUENCE: SpinLock<u32> = SpinLock::new(0);

/// A frame that is being made: its body, so far.
struct Frame {
    kind: u8,
    core: CoreId,
    bytes: [u8; MOST_BYTES],
    used: usize,
}

impl Frame {
    fn new(kind: u8, core: CoreId) -> Self {
        Self { kind, core, bytes: [0; MOST_BYTES], used: 0 }
    }

    fn room(&self) -> usize {
        MOST_BYTES - CHECKSUM_BYTES - HEAD_BYTES - self.used
    }

    /// What does not fit is left out: who cares asks [`Self::room`] first.
    fn push(&mut self, byte: u8) {
        if self.room() > 0 {
            self.bytes[self.used] = byte;
            self.used += 1;
        }
    }

    fn number(&mut self, mut number: u64) {
        while number > 0x7f {
            self.push(number as u8 | 0x80);
            number >>= 7;
        }
        self.push(number as u8);
    }

    fn send(self) {
        self.send_if(|| true);
    }

    /// Sends it unless that says, with nobody else sending, that it is not wanted any more.
    fn send_if(self, is_wanted: impl FnOnce() -> bool) {
        let mut sequence = SEQUENCE.lock();
        if !is_wanted() {
            return;
        }
        let mut payload = [0; MOST_BYTES];
        payload[..3].copy_from_slice(&[VERSION, self.kind, self.core.index() as u8]);
        let (mut length, mut number) = (3, *sequence);
        *sequence = sequence.wrapping_add(1);
        while number > 0x7f {
            payload[length] = number as u8 | 0x80;
            length += 1;
            number >>= 7;
        }
        payload[length] = number as u8;
        length += 1;
        payload[length..length + self.used].copy_from_slice(&self.bytes[..self.used]);
        length += self.used;
        let checksum = adler32(&payload[..length]);
        payload[length..length + CHECKSUM_BYTES].copy_from_slice(&checksum.to_le_bytes());
        length += CHECKSUM_BYTES;
        // One block of COBS: each zero, and the end, is announced by the byte before its block.
        let mut encoded = [0; MOST_BYTES + 1];
        let mut code_at = 0;
        for (index, byte) in payload[..length].iter().enumerate() {
            if *byte == 0 {
                encoded[code_at] = (index + 1 - code_at) as u8;
                code_at = index + 1;
            } else {
                encoded[index + 1] = *byte;
            }
        }
        encoded[code_at] = (length + 1 - code_at) as u8;
        console::bytes(&[&[0, 3], &encoded[..=length], &[0]]);
    }
}

/// The checksum of zlib.
fn adler32(bytes: &[u8]) -> u32 {
    // So few bytes do not overflow before the division at the end.
    let (a, b) = bytes.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = a + u32::from(*byte);
        (a, b + a)
    });
    ((b % 65521) << 16) | (a % 65521)
}

/// Tells the host tool what it needs to understand the rest.
pub fn send_hello() {
    let mut frame = Frame::new(HELLO, CoreId::BOOT);
    for number in [clock::frequency(), crate::machine::cores() as u64, clock::now()] {
        frame.number(number);
    }
    frame.send();
}

/// Sends numbers about a core, whose meaning is their place.
pub fn send_statistics(core: CoreId, values: &[u64]) {
    let mut frame = Frame::new(VALUES, core);
    values.iter().for_each(|value| frame.number(*value));
    frame.send();
}

/// Sends the text of a name that an event has.
fn send_name(kept: u32) {
    let Some(name) = name_of(kept) else { return };
    let mut frame = Frame::new(NAME, CoreId::BOOT);
    frame.number(kept.into());
    // Its end says most of a long path.
    let bytes = name.as_bytes();
    bytes[bytes.len().saturating_sub(frame.room())..].iter().for_each(|byte| frame.push(*byte));
    frame.send();
}

/// An event takes at most: kind, five numbers.
const EVENT_BYTES: usize = 1 + 10 + 4 + 5 + 10;

/// Sends a frame of the events of a core from `at` on, with what is there; first the names in it that `is_known` does not know. It is sent if `claim` takes the number of
/// the event that is next: one sender may be suspended here while another, who ends the system, has sent these. Returns that number; `at` itself if there is nothing to send.
pub fn send_core(
    core: CoreId,
    at: u64,
    mut is_known: impl FnMut(u32) -> bool,
    claim: impl FnOnce(u64) -> bool,
) -> u64 {
    // At most so many fit, since each takes five bytes at least.
    let mut events: [Option<Event>; MOST_BYTES / 8] = [None; MOST_BYTES / 8];
    let (mut next, mut lost, mut count) = (at, 0, 0);
    while count < events.len() {
        match ring(core).read(next) {
            Reading::Words(words) => {
                events[count] = Event::decode(next, words);
                count += 1;
                next += 1;
            }
            // What was read before belongs to a frame of its own: the host tool counts on from its first.
            Reading::Overwritten(_) if count > 0 => break,
            Reading::Overwritten(oldest) => {
                lost += oldest - next;
                next = oldest;
            }
            Reading::NotYet => break,
        }
    }
    if count == 0 {
        // What was lost the next frame would not know of: it is told then, again.
        return at;
    }
    let events = || events[..count].iter().flatten();
    events().filter(|event| event.name != 0 && !is_known(event.name)).for_each(|event| send_name(event.name));
    let mut frame = Frame::new(EVENTS, core);
    let first = next - count as u64;
    frame.number(lost);
    frame.number(first);
    let (mut before, mut sent) = (0_u64, first);
    for event in events() {
        if frame.room() < EVENT_BYTES {
            break;
        }
        frame.push(event.kind as u8);
        // An interrupt's may stand behind that of the code it has interrupted, and be older by a little.
        let since = (event.at.wrapping_sub(before)) as i64;
        frame.number(((since << 1) ^ (since >> 63)) as u64);
        before = event.at;
        frame.number(event.name.into());
        frame.number(event.value.into());
        frame.number(event.subject);
        sent = event.number + 1;
    }
    frame.send_if(|| claim(sent));
    sent
}

#[cfg(test)]
mod tests {
    use super::adler32;

    #[test]
    fn the_checksum_is_that_of_zlib() {
        assert_eq!(adler32(b"Wikipedia"), 0x11e6_0398);
        assert_eq!(adler32(b""), 1);
    }
}
