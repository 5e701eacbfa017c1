//! What the lock-free primitives return; the same for the hand-written and the portable ones.

use core::fmt;
use core::ptr::NonNull;

/// The deque has no free slot. Nothing was changed; the caller keeps the item.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Full;

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the deque is full: put the item on the overflow list")
    }
}

impl core::error::Error for Full {}

/// What one attempt to take the oldest item of a deque came to.
pub enum Steal<T> {
    /// There was nothing to take.
    Empty,
    /// Somebody else took that item, or the store-exclusive failed for no reason. The deque may hold
    /// more: the caller decides whether to try again.
    Lost,
    /// The oldest item. It belongs to the caller now.
    Taken(NonNull<T>),
}

// By hand, here and below: a derive would require the same of `T`.
impl<T> Clone for Steal<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Steal<T> {}

impl<T> PartialEq for Steal<T> {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Empty, Self::Empty) | (Self::Lost, Self::Lost) => true,
            (Self::Taken(mine), Self::Taken(other)) => mine == other,
            _ => false,
        }
    }
}

impl<T> Eq for Steal<T> {}

impl<T> fmt::Debug for Steal<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("Empty"),
            Self::Lost => f.write_str("Lost"),
            Self::Taken(item) => write!(f, "Taken({item:p})"),
        }
    }
}

impl<T> Steal<T> {
    /// The item, if one was taken.
    #[inline(always)]
    pub fn taken(self) -> Option<NonNull<T>> {
        match self {
            Self::Taken(item) => Some(item),
            Self::Empty | Self::Lost => None,
        }
    }
}

/// What one attempt of the double swap came to.
pub enum SwapOutcome<T> {
    /// The two pointers changed places. Named here because either slot may have changed again by the
    /// time the caller looks.
    Swapped {
        /// What the thief's slot holds now.
        gained: NonNull<T>,
        /// What the victim's slot holds now.
        given: NonNull<T>,
    },
    /// The victim's slot was null: its owner is in the middle of a swap of its own.
    VictimSlotNull,
    /// Another thief changed the thief's own slot first, or a store-exclusive failed for no reason.
    LostThiefSlot,
    /// Another thief changed the victim's slot first, or a store-exclusive failed for no reason. The
    /// thief's own slot holds again what it held.
    LostVictimSlot,
}

impl<T> Clone for SwapOutcome<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for SwapOutcome<T> {}

impl<T> fmt::Debug for SwapOutcome<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Swapped { gained, given } => {
                write!(f, "Swapped {{ gained: {gained:p}, given: {given:p} }}")
            }
            Self::VictimSlotNull => f.write_str("VictimSlotNull"),
            Self::LostThiefSlot => f.write_str("LostThiefSlot"),
            Self::LostVictimSlot => f.write_str("LostVictimSlot"),
        }
    }
}
