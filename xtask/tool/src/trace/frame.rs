//! Reads the frames of events and statistics. Whatever arrives may be damaged: then it is refused as a whole.

/// The version that is understood.
const VERSION: u8 = 1;

/// What has happened, by its number: `kernel/src/trace/event.rs` says what each means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A turn has ended, of one that has more to do.
    Yielded,
    /// A turn has ended, of one that waits now.
    Waits,
    /// The last turn has ended.
    Done,
    /// A turn was suspended.
    Suspended,
    /// A turn has crashed.
    Crashed,
    /// What was suspended goes on.
    Resumed,
    /// A process was started.
    Spawned,
    /// A process was woken.
    Woken,
    /// A process was stolen.
    Stolen,
    /// A mailbox was stolen.
    MailboxStolen,
    /// A move was refused.
    Refused,
    /// The core sleeps.
    Sleeps,
    /// The core goes on.
    Awake,
    /// An interrupt's handler has ended.
    Interrupt,
    /// A mailbox was taken whole.
    Gulp,
    /// The application's own.
    Mark,
    /// A message went into an empty mailbox, whose worker was told.
    Sent,
}

impl Kind {
    /// Every kind, in the order of their numbers, from 1 on.
    pub const ALL: [Self; 17] = [
        Self::Yielded,
        Self::Waits,
        Self::Done,
        Self::Suspended,
        Self::Crashed,
        Self::Resumed,
        Self::Spawned,
        Self::Woken,
        Self::Stolen,
        Self::MailboxStolen,
        Self::Refused,
        Self::Sleeps,
        Self::Awake,
        Self::Interrupt,
        Self::Gulp,
        Self::Mark,
        Self::Sent,
    ];

    /// Whether it is the end of a turn or of a part of one.
    pub fn ends_turn(self) -> bool {
        matches!(self, Self::Yielded | Self::Waits | Self::Done | Self::Suspended | Self::Crashed)
    }
}

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// When, in clock ticks.
    pub at: u64,
    /// What. `None` for a kind that this tool is too old for.
    pub kind: Option<Kind>,
    /// The number of its name, or 0.
    pub name: u32,
    /// See the kernel's kinds.
    pub value: u32,
    /// Whom it is about.
    pub subject: u64,
}

/// What a frame says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    /// Events of a core.
    Events {
        /// Which.
        core: u8,
        /// So many before them were overwritten before they were sent.
        lost: u64,
        /// The number of the first.
        first: u64,
        /// One after the other.
        events: Vec<Event>,
    },
    /// The text of a name.
    Name(u32, String),
    /// What a core has counted, by place: see `values`.
    Values(u8, Vec<u64>),
    /// What is needed to understand the rest.
    Hello {
        /// Clock ticks a second.
        frequency: u64,
        /// How many cores there are.
        cores: u64,
        /// When.
        now: u64,
    },
}

/// Takes numbers from a body.
struct Body<'a>(&'a [u8]);

impl Body<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads what stood between a frame's start and its end: its number among all frames, and what it says. `None` if it is damaged, or of another version.
pub fn read(encoded: &[u8]) -> Option<(u64, Record)> {
    let payload = decoded(encoded)?;
    let (payload, checksum) = payload.split_last_chunk::<4>()?;
    if adler32(payload) != u32::from_le_bytes(*checksum) {
        return None;
    }
    let (&[VERSION, kind, core], rest) = payload.split_first_chunk::<3>()? else { return None };
    let mut body = Body(rest);
    let sequence = body.number()?;
    let record = match kind {
        1 => events(core, &mut body)?,
        2 => Record::Name(u32::try_from(body.number()?).ok()?, String::from_utf8_lossy(body.0).into_owned()),
        3 => {
            let mut values = Vec::new();
            while !body.is_empty() {
                values.push(body.number()?);
            }
            Record::Values(core, values)
        }
        4 => Record::Hello { frequency: body.number()?, cores: body.number()?, now: body.number()? },
        _ => return None,
    };
    Some((sequence, record))
}

fn events(core: u8, body: &mut Body<'_>) -> Option<Record> {
    let (lost, first) = (body.number()?, body.number()?);
    let (mut events, mut at) = (Vec::new(), 0_u64);
    while !body.is_empty() {
        let kind = Kind::ALL.get(usize::from(body.byte()?).wrapping_sub(1)).copied();
        let since = body.number()?;
        at = at.wrapping_add((since >> 1) ^ (since & 1).wrapping_neg());
        let (name, value) = (u32::try_from(body.number()?).ok()?, u32::try_from(body.number()?).ok()?);
        events.push(Event { at, kind, name, value, subject: body.number()? });
    }
    Some(Record::Events { core, lost, first, events })
}

/// Takes COBS off.
fn decoded(mut encoded: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(encoded.len());
    while let Some((&code, rest)) = encoded.split_first() {
        let block = rest.get(..usize::from(code).checked_sub(1)?)?;
        bytes.extend_from_slice(block);
        encoded = &rest[block.len()..];
        if code != u8::MAX && !encoded.is_empty() {
            bytes.push(0);
        }
    }
    Some(bytes)
}

/// The checksum of zlib.
fn adler32(bytes: &[u8]) -> u32 {
    let (a, b) = bytes.iter().fold((1_u32, 0_u32), |(a, b), byte| {
        let a = (a + u32::from(*byte)) % 65521;
        (a, (b + a) % 65521)
    });
    (b << 16) | a
}

#[cfg(test)]
pub(in crate::trace) mod tests {
    use super::{Kind, Record, adler32, read};
    use crate::random::{Random, setting};

    /// A frame with this payload, as the kernel makes it.
    pub fn encode(payload: &[u8]) -> Vec<u8> {
        let payload = [payload, &adler32(payload).to_le_bytes()].concat();
        let mut encoded = vec![0];
        let mut code_at = 0;
        for byte in payload {
            if byte == 0 {
                encoded[code_at] = (encoded.len() - code_at) as u8;
                code_at = encoded.len();
            }
            encoded.push(byte);
        }
        encoded[code_at] = (encoded.len() - code_at) as u8;
        encoded
    }

    #[test]
    fn a_frame_that_the_kernel_made_is_read() {
        // The name of a process of the example hello, and events, as recorded from a run.
        let payload = [1, 1, 3, 0x81, 0x01, 5, 7, 12, 0x80, 0x01, 0, 0, 0, 8, 3, 9, 2, 0xc8, 0x01];
        let (sequence, record) = read(&encode(&payload)).unwrap();
        assert_eq!(sequence, 129);
        let Record::Events { core: 3, lost: 5, first: 7, events } = record else { panic!("{record:?}") };
        assert_eq!((events[0].at, events[0].kind), (64, Some(Kind::Sleeps)));
        assert_eq!((events[1].at, events[1].kind, events[1].name), (62, Some(Kind::Woken), 9));
        assert_eq!((events[1].value, events[1].subject), (2, 200));
    }

    #[test]
    fn what_is_damaged_is_refused() {
        let payload = [1, 4, 0, 0, 100, 4, 9];
        let frame = encode(&payload);
        assert!(matches!(read(&frame), Some((0, Record::Hello { frequency: 100, cores: 4, now: 9 }))));
        for at in 0..frame.len() {
            for bit in 0..8 {
                let mut damaged = frame.clone();
                damaged[at] ^= 1 << bit;
                assert_eq!(read(&damaged), None, "bit {bit} of byte {at}");
            }
            assert_eq!(read(&frame[..at]), None);
        }
        assert_eq!(read(&encode(&[2, 4, 0, 0, 100, 4, 9])), None, "another version");
    }

    #[test]
    fn noise_does_no_harm() {
        let first = setting("MAGPIE_SEED", 1);
        for seed in first..first + setting("MAGPIE_FUZZ", 2_000) {
            let mut random = Random::new(seed);
            let noise: Vec<u8> = (0..random.below(300)).map(|_| random.next() as u8).collect();
            // With a right checksum, too.
            let _ = (read(&noise), read(&encode(&noise)));
        }
    }
}
