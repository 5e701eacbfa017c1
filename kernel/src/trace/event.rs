//! One event: four things in three words.
//!
//! ```text
//!   word 0   when, in clock ticks
//!   word 1   kind: 8 bits | name: 24 bits | value: 32 bits
//!   word 2   subject: whom it is about
//! ```
//!
//! A name is a function of the kernel's or the application's that says it. Of its address 24 bits are kept, counted in instructions: so many MiB, 64,
//! and an image is shorter than half of that. The rest is that of a function that is known.

use crate::stats::Name;

/// What has happened. The numbers go over the serial line: they are not changed, and new ones come behind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Kind {
    /// A turn of the subject's has ended, which has more to do; the value is how long it was, in clock ticks.
    Yielded = 1,
    /// A turn has ended, of one that waits now.
    Waits = 2,
    /// The last turn has ended.
    Done = 3,
    /// A turn was suspended.
    Suspended = 4,
    /// A turn ended in a crash, or by a kill.
    Crashed = 5,
    /// The subject goes on where it was suspended.
    Resumed = 6,
    /// The subject was started; the value is the core that it goes to.
    Spawned = 7,
    /// The subject was woken, by what runs here; the value is the core that it goes to.
    Woken = 8,
    /// The subject was taken from another core, which is the value.
    Stolen = 9,
    /// A mailbox, the subject, was taken from another core's worker; the value is that core.
    MailboxStolen = 10,
    /// A move of the subject's to this core was refused; the value is the number of the rule.
    Refused = 11,
    /// This core sleeps from now on.
    Sleeps = 12,
    /// This core goes on; the value is for how long it was idle, in clock ticks.
    Awake = 13,
    /// An interrupt's handler has ended; the value is how long it took.
    Interrupt = 14,
    /// A mailbox was taken whole, with so many messages.
    Gulp = 15,
    /// The application's own: see [`mark`](super::mark).
    Mark = 16,
    /// A message went into a mailbox, the subject, in which none waited, and its worker, on another core perhaps, was told. What a behaviour sends to a
    /// mailbox of its own worker's is not told to anybody.
    Sent = 17,
}

impl Kind {
    /// Every kind, in the order of their numbers.
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

    fn of_number(number: u8) -> Option<Self> {
        Self::ALL.get(usize::from(number).checked_sub(1)?).copied()
    }
}

/// An event, as it is read.
#[derive(Clone, Copy, Debug)]
pub struct Event {
    /// Which one of its core's it is, from 0 on.
    pub number: u64,
    /// When, in clock ticks.
    pub at: u64,
    /// What.
    pub kind: Kind,
    /// Who knows the name of it, in the form in which it was kept; 0 if nobody does.
    pub name: u32,
    /// See [`Kind`].
    pub value: u32,
    /// Whom it is about.
    pub subject: u64,
}

impl Event {
    /// What `encode` has made; `None` of anything else.
    pub fn decode(number: u64, words: [u64; 3]) -> Option<Self> {
        let [at, what, subject] = words;
        let kind = Kind::of_number(what as u8)?;
        Some(Self {
            number,
            at,
            kind,
            name: (what >> 8) as u32 & NAME_MASK,
            value: (what >> 32) as u32,
            subject,
        })
    }

    /// The name of it.
    pub fn name(&self) -> Option<&'static str> {
        name_of(self.name)
    }
}

const NAME_BITS: u32 = 24;
const NAME_MASK: u32 = (1 << NAME_BITS) - 1;

/// The known function: nobody's name.
fn known() -> &'static str {
    ""
}

/// Short, because it is a part of each event: a name that is none is zero by itself. No function lies at a multiple of 64 MiB.
#[inline(always)]
pub(super) fn encode(at: u64, kind: Kind, subject: u64, value: u32, name: Option<Name>) -> [u64; 3] {
    let address = name.map_or(0, |name| name as usize as u64);
    let name = (address >> 2) & u64::from(NAME_MASK);
    [at, (u64::from(value) << 32) | (name << 8) | kind as u64, subject]
}

/// The address of which `kept` was kept, which is nearest to a known one.
fn address_of(kept: u32, known: usize) -> usize {
    let window = 1_usize << (NAME_BITS + 2);
    let near = (known & !(window - 1)) | ((kept as usize) << 2);
    match near.abs_diff(known) > window / 2 {
        true if near > known => near - window,
        true => near + window,
        false => near,
    }
}

/// What `encode` has kept of a name; `None` for none. Only of what came from there.
pub(super) fn name_of(kept: u32) -> Option<&'static str> {
    if kept == 0 || cfg!(not(target_os = "none")) {
        // A program on the host may be longer than is reached.
        return None;
    }
    let address = address_of(kept, known as fn() -> &'static str as usize);
    // SAFETY: `encode` has made it of a function of this type, which stays; the ring's reader has seen that its words belong together.
    let name = unsafe { core::mem::transmute::<usize, Name>(address) };
    Some(name())
}

#[cfg(test)]
mod tests {
    use super::{Event, Kind, NAME_MASK, address_of, encode};

    #[test]
    fn what_is_encoded_is_decoded() {
        for kind in Kind::ALL {
            let event = Event::decode(7, encode(1 << 47, kind, 0x4020_0000, u32::MAX, None)).expect("a kind");
            assert_eq!((event.number, event.at, event.kind), (7, 1 << 47, kind));
            assert_eq!((event.name, event.value, event.subject), (0, u32::MAX, 0x4020_0000));
        }
        for known in [0x8_0000, 0x3ff_fff0, 0x400_0010, 0x4020_0000, 0x43ff_fffc] {
            for address in [known - 0x10, known, known + 4, known + (16 << 20)] {
                assert_eq!(address_of((address >> 2) as u32 & NAME_MASK, known), address, "{known:#x}");
            }
        }
        assert!(Event::decode(0, [0; 3]).is_none() && Event::decode(0, [0, 18, 0]).is_none());
    }
}
