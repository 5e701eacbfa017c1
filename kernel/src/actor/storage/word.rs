//! The one word an actor costs beyond its state: generation, mailbox, life.
//!
//! ```text
//!   63            32 31        16   15   14    3 2    0
//!   ┌───────────────┬────────────┬──────┬───────┬──────┐
//!   │  generation   │  mailbox   │static│ meter │ life │
//!   └───────────────┴────────────┴──────┴───────┴──────┘
//!
//!            spawn             detach
//!      free ──────▶ attached ──────────▶ detached
//!       ▲            │  │  ▲                │ │
//!       │            │  │  └── re-attach ───┘ │ end, crash, vacate, retire: as from attached
//!       ├─ end, ─────┘  │
//!       │  crash        ├── vacate ───▶ vacant ──── respawn ──▶ starting ──▶ attached
//!       │               └── retire ───▶ retired ─── take ─────▶ starting ──▶ free
//!       └── the executor stops ── starting ── from anywhere but starting and ending
//! ```
//!
//! Between the end of an actor and *free* or *vacant* its cell is *ending*, while its state is dropped: that is the
//! application's code, which may take long, and may crash.
//!
//! An address carries the word of its actor as it is while the actor is attached. So one load and one
//! compare on delivery say that the actor lives, that it is the same actor, and that no suspended behaviour
//! holds it; everything else is the slow path.
//!
//! An actor that has a *meter* (`meter.rs`) has its number in the word of its cell as long as it lives, attached or detached, and not in its
//! address. So all that is sent to it takes the slow path, which counts, and for others nothing is looked at.
//!
//! A cell's generation grows each time its actor ends, and stays at the last one: in a cell that has reached it nothing
//! is started any more, so an address never means a later actor. Who finds a cell vacant or retired claims it by
//! exchanging the word for *starting*; only one can.

use super::mailbox_index::MailboxIndex;

const LIFE_MASK: u64 = 0x7;
const METER_SHIFT: u32 = 3;
const METER_MASK: u64 = 0x7ff8;
/// What changes in the life of one actor.
const STATE_MASK: u64 = LIFE_MASK | METER_MASK;
const STATIC: u64 = 0x8000;
const MAILBOX_SHIFT: u32 = 16;
const GENERATION_SHIFT: u32 = 32;
/// No actor is of this generation: a cell that has reached it has had its last.
const LAST_GENERATION: u64 = u32::MAX as u64;

/// What is in a cell.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u64)]
pub(crate) enum Life {
    /// Nothing.
    Free = 0,
    /// An actor that its mailbox's worker may run.
    Attached = 1,
    /// An actor that a suspended behaviour holds.
    Detached = 2,
    /// Nothing, but the memory is kept for a successor.
    Vacant = 3,
    /// The state of an actor that has ended.
    Retired = 4,
    /// Somebody has claimed the cell.
    Starting = 5,
    /// The state of an actor that has ended, while it is dropped.
    Ending = 6,
}

/// The value of a cell's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(transparent)]
pub(crate) struct Word(u64);

impl Word {
    /// A cell of a chunk that was never used.
    pub(super) const UNUSED: Self = Self(Life::Free as u64);
    /// A cell that belongs to the user, as if so many actors had ended in it; at most the last generation.
    pub(super) const fn free_static(generation: u32) -> Self {
        Self((generation as u64) << GENERATION_SHIFT | STATIC | Life::Free as u64)
    }

    pub(crate) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(crate) const fn bits(self) -> u64 {
        self.0
    }

    const fn with_life(self, life: Life) -> Self {
        Self(self.0 & !STATE_MASK | life as u64)
    }

    /// The word that its cell has when the actor has the meter with that number, in place of this.
    pub(crate) const fn with_meter(self, number: u16) -> Self {
        Self(self.0 & !METER_MASK | ((number as u64) << METER_SHIFT & METER_MASK))
    }

    /// The number of the actor's meter; 0 if it has none, or there is no actor.
    pub(crate) const fn meter(self) -> u16 {
        ((self.0 & METER_MASK) >> METER_SHIFT) as u16
    }

    /// The word of this actor in its cell when a suspended behaviour holds it: with its meter.
    pub(crate) const fn held(self) -> Self {
        self.detached().with_meter(self.meter())
    }

    /// The word of this actor in its cell when it is attached: with its meter.
    pub(crate) const fn given_back(self) -> Self {
        self.attached().with_meter(self.meter())
    }

    /// Whether this, the word in a cell, is that of the actor with that address, which is attached.
    pub(crate) const fn is_attached(self, address: Self) -> bool {
        self.0 & !METER_MASK == address.0
    }

    /// The same of one that a suspended behaviour holds.
    pub(crate) const fn is_detached(self, address: Self) -> bool {
        self.0 & !METER_MASK == address.detached().0
    }

    /// The word of the actor that is spawned into a free or claimed cell.
    pub(crate) const fn spawned(self, mailbox: MailboxIndex) -> Self {
        let kept = self.0 >> GENERATION_SHIFT << GENERATION_SHIFT | self.0 & STATIC;
        Self(kept | (mailbox.get() as u64) << MAILBOX_SHIFT | Life::Attached as u64)
    }

    /// The same actor, as its address knows it.
    pub(crate) const fn attached(self) -> Self {
        self.with_life(Life::Attached)
    }

    /// The same actor, held by a suspended behaviour.
    pub(crate) const fn detached(self) -> Self {
        self.with_life(Life::Detached)
    }

    /// The cell, claimed.
    pub(crate) const fn starting(self) -> Self {
        self.with_life(Life::Starting)
    }

    /// The cell after the actor has ended, or after the state that it left was taken.
    pub(crate) const fn after_end(self, life: Life) -> Self {
        let generation = self.0 >> GENERATION_SHIFT;
        let next = if generation < LAST_GENERATION { generation + 1 } else { LAST_GENERATION };
        let low = self.0 & (u32::MAX as u64);
        Self(next << GENERATION_SHIFT | low).with_life(life)
    }

    /// The cell while the state of its actor is dropped, which has ended.
    pub(crate) const fn ending(self) -> Self {
        self.with_life(Life::Ending)
    }

    /// Whether the cell has had its last actor: nothing may be started in it.
    pub(crate) const fn is_used_up(self) -> bool {
        self.0 >> GENERATION_SHIFT == LAST_GENERATION
    }

    /// What is in the cell; `None` if the word was overwritten.
    pub(crate) const fn life(self) -> Option<Life> {
        let life = self.0 & LIFE_MASK;
        if self.meter() != 0 && life != Life::Attached as u64 && life != Life::Detached as u64 {
            return None;
        }
        match life {
            0 => Some(Life::Free),
            1 => Some(Life::Attached),
            2 => Some(Life::Detached),
            3 => Some(Life::Vacant),
            4 => Some(Life::Retired),
            5 => Some(Life::Starting),
            6 => Some(Life::Ending),
            _ => None,
        }
    }

    /// Whether an actor is in the cell.
    pub(crate) const fn is_alive(self) -> bool {
        matches!(self.life(), Some(Life::Attached | Life::Detached))
    }

    /// Whether this and `other` are words of the same actor, attached or detached.
    pub(crate) const fn is_same_actor(self, other: Self) -> bool {
        self.is_alive() && self.0 & !STATE_MASK == other.0 & !STATE_MASK
    }

    /// Whether the cell belongs to the user instead of a chunk.
    pub(crate) const fn is_static(self) -> bool {
        self.0 & STATIC != 0
    }

    #[inline(always)]
    pub(crate) const fn mailbox(self) -> MailboxIndex {
        MailboxIndex::from_bits((self.0 >> MAILBOX_SHIFT) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::{Life, Word};
    use crate::actor::storage::MailboxIndex;

    #[test]
    fn a_later_actor_in_the_same_cell_is_another() {
        let first = Word::UNUSED.spawned(MailboxIndex::from_bits(3));
        let free = first.after_end(Life::Free);
        let second = free.spawned(MailboxIndex::from_bits(3));
        assert!(first.is_alive() && second.is_alive() && !free.is_alive());
        assert!(!first.is_same_actor(second) && !second.is_same_actor(first));
        assert!(first.detached().is_same_actor(first));
        assert_eq!(first.detached().mailbox(), first.mailbox());
    }

    #[test]
    fn a_meter_is_known_in_the_cell_alone() {
        let address = Word::UNUSED.spawned(MailboxIndex::from_bits(9));
        for number in [1, 77, 4095] {
            let cell = address.with_meter(number);
            assert_eq!((cell.meter(), address.meter(), cell.mailbox()), (number, 0, address.mailbox()));
            assert!(cell != address && cell.is_same_actor(address) && address.is_same_actor(cell));
            assert!(cell.is_attached(address) && !cell.is_detached(address));
            let held = cell.held();
            assert!(held.is_detached(address) && !held.is_attached(address) && held.is_same_actor(address));
            assert_eq!((held.meter(), held.given_back(), cell.attached()), (number, cell, address));
            assert_eq!((cell.life(), held.life()), (Some(Life::Attached), Some(Life::Detached)));
            // With its end it is gone.
            assert_eq!(cell.after_end(Life::Free), address.after_end(Life::Free));
            assert_eq!((cell.ending(), cell.starting()), (address.ending(), address.starting()));
        }
        assert!(address.is_attached(address) && address.detached().is_detached(address));
        assert_eq!(Word::from_bits(address.after_end(Life::Free).bits() | 8).life(), None, "overwritten");
    }

    #[test]
    fn what_is_left_of_an_actor_is_not_alive() {
        let actor = Word::free_static(0).spawned(MailboxIndex::from_bits(7));
        for life in [Life::Free, Life::Vacant, Life::Retired] {
            let left = actor.after_end(life);
            assert!(!left.is_alive() && !left.is_same_actor(actor) && left.is_static());
            assert_eq!((left.life(), left.mailbox()), (Some(life), actor.mailbox()));
        }
    }

    #[test]
    fn the_last_generation_is_not_followed_by_the_first() {
        let last = Word::free_static(u32::MAX - 1).spawned(MailboxIndex::from_bits(7));
        assert!(!last.is_used_up());
        for life in [Life::Free, Life::Vacant, Life::Retired] {
            let left = last.after_end(life);
            assert!(left.is_used_up() && left.is_static() && !left.is_same_actor(last));
            assert_eq!((left.life(), left.mailbox()), (Some(life), last.mailbox()));
            // What a finished actor has left may be taken, and the cell is used up as before.
            assert_eq!(left.starting().after_end(Life::Free), last.after_end(Life::Free));
        }
    }
}
