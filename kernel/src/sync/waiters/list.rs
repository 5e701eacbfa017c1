//! The list of those who wait, in the order in which they came, and who is urgent before all others: who is in it, and who of them counts as told.
//!
//! Putting in, finding and taking out take the same time however many wait, because they are done with preemption disabled: a waiter
//! is found by its place, and places lie in pages that never move. Nothing here locks, allocates but in [`Page::new`], or frees.

use alloc::vec::Vec;
use core::mem;
use core::task::Waker;

use crate::sync::take_kept;

/// This many can wait although memory is used up.
pub(super) const FEW: usize = 4;

/// This many places are made at once beyond those.
const PAGE: usize = 32;

/// Where a waiter is: the number of a place, counted from one. Zero is nowhere, so that a list without waiters is all zeros.
type Number = u32;

#[derive(Default)]
struct Entry {
    /// The place is free: zero.
    ticket: u64,
    waker: Option<Waker>,
    previous: Number,
    /// Of a free place, the next free one.
    next: Number,
}

/// Places for more.
pub(super) struct Page(Vec<Entry>);

impl Page {
    /// None without memory.
    pub(super) fn new() -> Option<Self> {
        let mut entries = Vec::new();
        entries.try_reserve_exact(PAGE).ok()?;
        entries.resize_with(PAGE, Entry::default);
        Some(Self(entries))
    }
}

/// In which of two rows somebody waits. A number, and no enumeration, because futures would keep their state in what that has to spare, and take
/// longer to look.
pub(super) type Row = u32;

/// Zero, so that a place nowhere is all zeros.
pub(super) const OTHER: Row = 0;
pub(super) const URGENT: Row = 1;

/// The place of one waiter, which may have left it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    ticket: u64,
    number: Number,
    row: Row,
}

impl Place {
    pub(super) const NOWHERE: Self = Self { ticket: 0, number: 0, row: OTHER };

    /// Whether somebody has been there.
    #[inline(always)]
    pub(super) fn is_somewhere(self) -> bool {
        self.ticket != 0
    }
}

pub(super) struct List {
    few: [Entry; FEW],
    pages: Vec<Page>,
    /// Of each row.
    first: [Number; 2],
    last: [Number; 2],
    /// The first of the places that were left.
    left_place: Number,
    /// How many places have been taken since nobody waited.
    used: Number,
    length: usize,
    /// The last ticket that was given out.
    last_ticket: u64,
    /// Up to this ticket all count as told, whether they are here still or not.
    told: u64,
    /// How many of those are here still.
    to_tell: usize,
    /// Up to this ticket all may be told, a few at a time, and do not count as told before.
    few_until: u64,
}

impl List {
    pub(super) const EMPTY: Self = Self {
        few: [const { Entry { ticket: 0, waker: None, previous: 0, next: 0 } }; FEW],
        pages: Vec::new(),
        first: [0; 2],
        last: [0; 2],
        left_place: 0,
        used: 0,
        length: 0,
        last_ticket: 0,
        told: 0,
        to_tell: 0,
        few_until: 0,
    };

    fn entry(&mut self, number: Number) -> Option<&mut Entry> {
        let index = (number as usize).checked_sub(1)?;
        match index.checked_sub(FEW) {
            None => self.few.get_mut(index),
            Some(index) => self.pages.get_mut(index / PAGE)?.0.get_mut(index % PAGE),
        }
    }

    /// Who waits in that place, if that has not been told or taken out.
    fn known(&mut self, place: Place) -> Option<&mut Entry> {
        self.entry(place.number).filter(|entry| entry.ticket == place.ticket)
    }

    /// The waker of who waits there, if that has not been told or taken out.
    pub(super) fn waker(&mut self, place: Place) -> Option<&mut Waker> {
        self.known(place)?.waker.as_mut()
    }

    /// Puts a waiter behind all others of its row, or returns its waker when there is no room.
    pub(super) fn add(&mut self, waker: Waker, row: Row) -> Result<Place, Waker> {
        let number = if self.left_place != 0 { self.left_place } else { self.used + 1 };
        let (ticket, last) = (self.last_ticket + 1, self.last[row as usize]);
        let Some(entry) = self.entry(number) else { return Err(waker) };
        let next_left = mem::take(&mut entry.next);
        entry.ticket = ticket;
        entry.waker = Some(waker);
        entry.previous = last;
        if self.left_place != 0 {
            self.left_place = next_left;
        } else {
            self.used = number;
        }
        self.link(row, last, number);
        self.last[row as usize] = number;
        self.last_ticket = ticket;
        self.length += 1;
        Ok(Place { ticket, number, row })
    }

    /// Behind that one comes this one.
    fn link(&mut self, row: Row, number: Number, next: Number) {
        match self.entry(number) {
            Some(entry) => entry.next = next,
            None => self.first[row as usize] = next,
        }
    }

    /// Whether who is there counts as told, and has not been taken out by whoever tells.
    pub(super) fn is_to_be_told(&self, place: Place) -> bool {
        place.is_somewhere() && place.ticket <= self.told && self.to_tell > 0
    }

    /// Takes out who is there, if that was not told.
    pub(super) fn remove(&mut self, place: Place) -> Option<Waker> {
        let left_place = self.left_place;
        let entry = self.known(place)?;
        // Some lists are never freed.
        let waker = take_kept(&mut entry.waker);
        entry.ticket = 0;
        let (previous, next) = (entry.previous, mem::replace(&mut entry.next, left_place));
        self.left_place = place.number;
        self.link(place.row, previous, next);
        match self.entry(next) {
            Some(entry) => entry.previous = previous,
            None => self.last[place.row as usize] = previous,
        }
        self.length -= 1;
        if place.ticket <= self.told {
            self.to_tell -= 1;
        }
        waker
    }

    /// From here on all count as told.
    pub(super) fn tell(&mut self) {
        self.told = self.last_ticket;
        self.to_tell = self.length;
    }

    /// Whether any who count as told are here still.
    pub(super) fn has_to_tell(&mut self) -> bool {
        self.to_tell > 0
    }

    /// Takes out the first of those who count as told.
    pub(super) fn take_told(&mut self) -> Option<Waker> {
        // They came before all others of their rows.
        let place = if self.to_tell > 0 { self.first_until(self.told) } else { None };
        place.and_then(|place| self.remove(place))
    }

    /// All who are here by now may be taken out by [`Self::take_few`].
    pub(super) fn begin_few(&mut self) {
        self.few_until = self.last_ticket;
    }

    /// Whether any are here of whom that is true.
    pub(super) fn has_few(&mut self) -> bool {
        self.first_until(self.few_until).is_some()
    }

    /// Takes out the first of those.
    pub(super) fn take_few(&mut self) -> Option<Waker> {
        self.first_until(self.few_until).and_then(|place| self.remove(place))
    }

    /// Whether any of those are urgent.
    pub(super) fn has_urgent_few(&mut self) -> bool {
        self.first_of(URGENT, self.few_until).is_some()
    }

    /// The first of those with tickets up to this one, if any is here.
    fn first_until(&mut self, ticket: u64) -> Option<Place> {
        if self.length == 0 {
            return None;
        }
        self.first_of(URGENT, ticket).or_else(|| self.first_of(OTHER, ticket))
    }

    fn first_of(&mut self, row: Row, until: u64) -> Option<Place> {
        let number = self.first[row as usize];
        let ticket = self.entry(number)?.ticket;
        (ticket <= until).then_some(Place { ticket, number, row })
    }

    /// Memory for many is not kept when nobody is left: what the caller frees, outside the lock. If those who were told last never come, it is kept
    /// until somebody else does.
    pub(super) fn take_unused(&mut self) -> Vec<Page> {
        if self.length > 0 || self.pages.is_empty() {
            return Vec::new();
        }
        (self.left_place, self.used) = (0, 0);
        mem::take(&mut self.pages)
    }

    /// How many pages there are to be room for, if there is no more room for their addresses.
    pub(super) fn pages_wanted(&self) -> Option<usize> {
        (self.pages.len() == self.pages.capacity()).then(|| 2 * self.pages.len().max(FEW))
    }

    /// Takes a page, and room for the addresses of pages, which is exchanged for the one there is if it is larger. A page for which there is no
    /// room stays.
    pub(super) fn grow(&mut self, room: &mut Vec<Page>, page: &mut Option<Page>) {
        if room.capacity() > self.pages.capacity() {
            // Under the lock: 24 bytes for each 32 who wait.
            room.append(&mut self.pages);
            mem::swap(room, &mut self.pages);
        }
        if self.pages.len() < self.pages.capacity()
            && let Some(page) = page.take()
        {
            self.pages.push(page);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{List, OTHER};
    use crate::sync::kept_waker::tests::{leads_to, waker_of_nobody};

    #[test]
    fn a_place_that_was_left_leads_nowhere() {
        let mut list = List::EMPTY;
        let (waker, address) = waker_of_nobody();
        let Ok(place) = list.add(waker, OTHER) else { panic!("there is a place for a few") };
        assert!(list.remove(place).is_some(), "who waits there");
        assert!(!leads_to(&list.few[0].waker, address), "the address of who waited is left in the place");
    }
}
