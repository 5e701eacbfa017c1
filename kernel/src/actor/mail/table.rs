//! The table: the slots that workers go through, each with a pointer to a mailbox.
//!
//! Worker `i` owns a contiguous range; the first ones have one slot more if they cannot be shared out evenly.
//! Thieves exchange pointers between ranges, never null ones into another's: so an owner never finds null in
//! its own range, and each mailbox is in exactly one slot, or in the hands of exactly one thief.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::ptr;

use super::mailbox::Mailbox;
use super::place::Place;
use crate::arch::atomic::{AtomicPtr, Ordering};

/// The slots of one worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Range {
    pub first: usize,
    pub slots: usize,
}

/// The range of worker `index` of `workers`, when `slots` are shared out.
pub(crate) const fn range(slots: usize, workers: usize, index: usize) -> Range {
    let (each, more) = (slots / workers, slots % workers);
    Range {
        first: index * each + if index < more { index } else { more },
        slots: each + (index < more) as usize,
    }
}

/// In whose range a slot is, when `slots` are shared out to `workers`, and where there.
const fn place_in(slots: usize, workers: usize, slot: usize) -> (usize, usize) {
    let (each, more) = (slots / workers, slots % workers);
    let longer = more * (each + 1);
    if slot < longer || each == 0 {
        (slot / (each + 1), slot % (each + 1))
    } else {
        (more + (slot - longer) / each, (slot - longer) % each)
    }
}

/// The slots.
pub(crate) struct Table {
    slots: Box<[AtomicPtr<Mailbox>]>,
    workers: usize,
}

impl Table {
    /// A table of these mailboxes, in this order; `None` without memory.
    pub(crate) fn new<'a>(
        mailboxes: impl ExactSizeIterator<Item = &'a Mailbox>,
        workers: usize,
    ) -> Option<Self> {
        let mut slots = Vec::new();
        slots.try_reserve_exact(mailboxes.len()).ok()?;
        slots.extend(mailboxes.map(|mailbox| AtomicPtr::new(ptr::from_ref(mailbox).cast_mut())));
        Some(Self { slots: slots.into_boxed_slice(), workers })
    }

    /// Slot number `slot`, for a swap.
    pub(crate) fn slot(&self, slot: usize) -> &AtomicPtr<Mailbox> {
        &self.slots[slot]
    }

    /// The mailbox in a slot; null while its owner swaps it.
    #[inline(always)]
    pub(crate) fn at(&self, slot: usize) -> *mut Mailbox {
        // Acquire: pairs with the release of the swap that put it there.
        self.slots[slot].load(Ordering::Acquire)
    }

    /// The mailboxes in a range; null for one that its owner swaps.
    #[inline(always)]
    pub(crate) fn all_of(&self, range: Range) -> impl Iterator<Item = *mut Mailbox> {
        // Acquire: as in `at`.
        self.slots[range.first..][..range.slots].iter().map(|slot| slot.load(Ordering::Acquire))
    }

    /// The same from this place of the range on, and then from its beginning.
    pub(crate) fn all_of_from(&self, range: Range, start: usize) -> impl Iterator<Item = *mut Mailbox> {
        let (first, from) = self.slots[range.first..][..range.slots].split_at(start);
        // Acquire: as in `at`.
        from.iter().chain(first).map(|slot| slot.load(Ordering::Acquire))
    }

    /// The range of a worker.
    pub(crate) fn range_of(&self, worker: usize) -> Range {
        range(self.slots.len(), self.workers, worker)
    }

    /// Whose range a slot is in, and where.
    pub(crate) fn place_of(&self, slot: usize) -> Place {
        let (worker, offset) = place_in(self.slots.len(), self.workers, slot);
        // There are fewer mailboxes than a `u16` has values.
        Place { worker: worker as u16, offset: offset as u16 }
    }

    /// A thief has put `mailbox` into `slot`: makes known whose it is. Returns where it is now; a full barrier has passed
    /// since its number was stored. `None` if another thief has it in hand, who will do the same.
    pub(crate) fn publish(&self, mailbox: &Mailbox, slot: usize) -> Option<Place> {
        let bits = mailbox.owner.publish(
            slot,
            |slot| self.place_of(slot).bits() as usize,
            |slot| ptr::eq(self.at(slot), mailbox),
            || self.slot_of(mailbox),
        )?;
        Some(Place::from_bits(bits as u32))
    }

    /// How many slots there are.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The slot that a mailbox is in, unless a thief has it in hand.
    fn slot_of(&self, mailbox: &Mailbox) -> Option<usize> {
        (0..self.slots.len()).find(|&slot| ptr::eq(self.at(slot), mailbox))
    }

    /// Whether it holds exactly these mailboxes, each once. While nobody swaps.
    pub(crate) fn holds_each_once<'a>(&self, mailboxes: impl Iterator<Item = &'a Mailbox>) -> bool {
        let mut found: Vec<_> = (0..self.slots.len()).map(|slot| self.at(slot).cast_const()).collect();
        let mut expected: Vec<_> = mailboxes.map(ptr::from_ref).collect();
        found.sort_unstable();
        expected.sort_unstable();
        found == expected
    }
}

#[cfg(test)]
mod tests {
    use super::{place_in, range};

    #[test]
    fn ranges_are_contiguous_and_as_even_as_can_be() {
        for workers in 1..9 {
            for slots in workers..40 {
                let mut next = 0;
                for index in 0..workers {
                    let range = range(slots, workers, index);
                    assert_eq!(range.first, next);
                    assert!(range.slots == slots / workers || range.slots == slots / workers + 1);
                    for offset in 0..range.slots {
                        assert_eq!(place_in(slots, workers, range.first + offset), (index, offset));
                    }
                    next += range.slots;
                }
                assert_eq!(next, slots);
            }
        }
    }
}
