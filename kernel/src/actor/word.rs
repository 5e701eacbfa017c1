//! The one word an actor costs beyond its state: generation, mailbox, life.
//!
//! ```text
//!   63            32 31        16 15        0
//!   ┌───────────────┬────────────┬───────────┐
//!   │  generation   │  mailbox   │   life    │
//!   └───────────────┴────────────┴───────────┘
//!
//!   free ──spawn──▶ attached ──detach──▶ detached
//!    ▲                │   ▲                │ │
//!    │   end          │   └───re-attach────┘ │ end
//!    └── generation+1 ┴──────────────────────┘
//! ```
//!
//! An address carries the word of its actor as it is while the actor is attached. So one load and one
//! compare on delivery say that the actor lives, that it is the same actor, and that no suspended behaviour
//! holds it; everything else is the slow path.
//!
//! A cell's generation grows each time its actor ends, and a cell whose generation would wrap is never used
//! again, so an address never means a later actor.

use crate::actor::mailbox::MailboxIndex;

const LIFE_MASK: u64 = 0xffff;
const MAILBOX_SHIFT: u32 = 16;
const GENERATION_SHIFT: u32 = 32;

const FREE: u64 = 0;
const ATTACHED: u64 = 1;
const DETACHED: u64 = 2;

/// The value of a cell's word.
#[derive(Clone, Copy, PartialEq, Eq)]
#[repr(transparent)]
pub struct Word(u64);

impl Word {
    /// A cell that was never used.
    pub(super) const NEVER_USED: Self = Self(FREE);

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(super) const fn bits(self) -> u64 {
        self.0
    }

    /// The word of the actor that is spawned into a free cell.
    pub(super) const fn spawned(self, mailbox: MailboxIndex) -> Self {
        Self(
            self.0 >> GENERATION_SHIFT << GENERATION_SHIFT
                | (mailbox.get() as u64) << MAILBOX_SHIFT
                | ATTACHED,
        )
    }

    /// The same actor, held by a suspended behaviour.
    pub(super) const fn detached(self) -> Self {
        Self(self.0 & !LIFE_MASK | DETACHED)
    }

    /// The free cell after the actor has ended; `None` if it must not be used again.
    pub(super) const fn ended(self) -> Option<Self> {
        match (self.0 >> GENERATION_SHIFT) + 1 {
            generation if generation > u32::MAX as u64 => None,
            generation => Some(Self(generation << GENERATION_SHIFT | FREE)),
        }
    }

    /// Whether an actor is in the cell.
    pub(super) const fn is_alive(self) -> bool {
        self.0 & LIFE_MASK != FREE
    }

    /// Whether this and `other` are words of the same actor, attached or detached.
    pub(super) const fn is_same_actor(self, other: Self) -> bool {
        self.is_alive() && self.0 & !LIFE_MASK == other.0 & !LIFE_MASK
    }

    pub(super) const fn mailbox(self) -> MailboxIndex {
        MailboxIndex::from_bits((self.0 >> MAILBOX_SHIFT) as u16)
    }
}

#[cfg(test)]
mod tests {
    use super::Word;
    use crate::actor::mailbox::MailboxIndex;

    #[test]
    fn a_later_actor_in_the_same_cell_is_another() {
        let first = Word::NEVER_USED.spawned(MailboxIndex::from_bits(3));
        let second = first.ended().expect("not the last generation").spawned(MailboxIndex::from_bits(3));
        assert!(first.is_alive() && second.is_alive());
        assert!(!first.is_same_actor(second));
        assert!(first.is_same_actor(first.detached()));
        assert_eq!(first.detached().mailbox(), first.mailbox());
    }

    #[test]
    fn the_last_generation_is_not_followed_by_the_first() {
        let last = Word::from_bits(0xffff_ffff << 32).spawned(MailboxIndex::from_bits(0));
        assert!(last.ended().is_none());
    }
}
