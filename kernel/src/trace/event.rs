//! One event: four things in three words.
//!
//! ```text
//!   word 0   when, in clock ticks
//!   word 1   kind: 8 bits | name: 24 bits | value: 32 bits
//!   word 2   subject: whom it is about
//! ```
//!
//! A name is a function of the kernel's or the application's that says it. What is kept of it is how far it lies from one that is known, in
//! instructions: an image is shorter than the 32 MiB that this reaches.

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
}

impl Kind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [Self; 16] = [
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

const NAME_MASK: u32 = (1 << 24) - 1;

/// From where names are counted. Nobody's name, so its number is free.
fn origin() -> &'static str {
    ""
}

#[inline(always)]
pub(super) fn encode(at: u64, kind: Kind, subject: u64, value: u32, name: Option<Name>) -> [u64; 3] {
    let name = match name {
        Some(name) => (name as usize as u64).wrapping_sub(origin as fn() -> &'static str as usize as u64),
        None => 0,
    };
    // Functions lie four bytes apart at least on the machine; on the host, any.
    let name = if cfg!(target_os = "none") { name >> 2 } else { name };
    [at, (u64::from(value) << 32) | ((name & u64::from(NAME_MASK)) << 8) | kind as u64, subject]
}

/// What `encode` has kept of a name; `None` for none. Only of what came from there.
pub(super) fn name_of(kept: u32) -> Option<&'static str> {
    if kept == 0 || cfg!(not(target_os = "none")) {
        // A program on the host may be longer than is reached.
        return None;
    }
    // Sign-extended from 24 bits, in instructions.
    let distance = i64::from(((kept << 8) as i32) >> 8) << 2;
    let address = (origin as fn() -> &'static str as usize as i64).wrapping_add(distance) as usize;
    // SAFETY: `encode` has made it of a function of this type, which stays; the ring's reader has seen that its words belong together.
    let name = unsafe { core::mem::transmute::<usize, Name>(address) };
    Some(name())
}

#[cfg(test)]
mod tests {
    use super::{Event, Kind, encode};

    #[test]
    fn what_is_encoded_is_decoded() {
        for kind in Kind::ALL {
            let event = Event::decode(7, encode(1 << 47, kind, 0x4020_0000, u32::MAX, None)).expect("a kind");
            assert_eq!((event.number, event.at, event.kind), (7, 1 << 47, kind));
            assert_eq!((event.name, event.value, event.subject), (0, u32::MAX, 0x4020_0000));
        }
        assert!(Event::decode(0, [0; 3]).is_none() && Event::decode(0, [0, 17, 0]).is_none());
    }
}
