//! Rolls: what lives of one kind, for anybody to go through at any time. They keep nothing alive.
//!
//! What is entered has a place until it is struck off. Places lie in pages that are only added, so whoever goes through a roll looks at one
//! place after the other, and loses none when somebody comes or goes. The lock is held for one look at one place. What is entered
//! in it lives then, because its owner strikes it off, under the same lock, before it lets go of it. What is entered
//! all the time is seen once; what comes or goes meanwhile may be seen or not.
//!
//! A place holds the complement of a pointer. To a collection of what crashes left (`mem::orphans`) it is none, so nothing seems to be in
//! use because it is on a roll; and what that frees it takes out here (`forget`).
//!
//! A roll takes 8 bytes for each that were on it at a time, and gives none back.

use core::iter;
use core::ptr::{self, NonNull};

use alloc::boxed::Box;

use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::mem;
use crate::queue::{AppendOnly, Linked};
use crate::sync::SpinLock;

/// So that a page has 1 KiB.
const PLACES: usize = 127;

/// Where something is entered. Free, it holds a pointer to the next that is, or null; else the complement of a pointer. Those are even, and
/// their complements odd.
#[repr(transparent)]
pub(crate) struct Place(AtomicPtr<()>);

struct Page {
    link: AtomicPtr<Page>,
    places: [Place; PLACES],
}

/// A list of what lives.
pub(crate) struct Roll {
    /// The places that are free, linked. Places change under this lock only.
    free: SpinLock<Option<&'static Place>>,
    pages: AppendOnly<Page>,
    /// In the list of all rolls that have pages.
    link: AtomicPtr<Roll>,
}

/// All rolls that have pages.
static ROLLS: AppendOnly<Roll> = AppendOnly::new();

// SAFETY: `link` is one field for life, used by nothing but the list.
unsafe impl Linked for Page {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

// SAFETY: as above.
unsafe impl Linked for Roll {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

impl Place {
    // Relaxed, here and below: under the lock, but for looks that are repeated there.
    fn entered(&self) -> Option<NonNull<()>> {
        let content = self.0.load(Ordering::Relaxed);
        if content.addr() & 1 == 0 { None } else { NonNull::new(content.map_addr(|address| !address)) }
    }

    /// The next that is free, of one that is.
    fn next(&self) -> Option<&'static Self> {
        // SAFETY: null, or a place in a page, which stays for ever.
        unsafe { self.0.load(Ordering::Relaxed).cast::<Self>().as_ref() }
    }

    fn leave(&self, next: Option<&'static Self>) {
        let next = next.map_or(ptr::null(), ptr::from_ref);
        self.0.store(next.cast_mut().cast(), Ordering::Relaxed);
    }
}

impl Roll {
    /// Nobody.
    pub(crate) const fn new() -> Self {
        Self { free: SpinLock::new(None), pages: AppendOnly::new(), link: AtomicPtr::new(ptr::null_mut()) }
    }

    /// Makes room for more, if there is memory.
    pub(crate) fn grow(&'static self) {
        // SAFETY: zeros are a page: no next one, and places that lead to no other.
        let page = unsafe { mem::kernel_box_in_place(|page: *mut Page| page.write_bytes(0, 1)) };
        let Ok(page) = page else { return };
        let page: &'static Page = Box::leak(page);
        // No collection begins before all of this is done.
        let mut free = self.free.lock();
        if self.pages.is_empty() {
            // SAFETY: valid for ever, and this is done once, under the lock.
            unsafe { ROLLS.push(NonNull::from(self)) };
        }
        // SAFETY: it was leaked just now.
        unsafe { self.pages.push(NonNull::from(page)) };
        // The last is taken first.
        for place in &page.places {
            place.leave(*free);
            *free = Some(place);
        }
    }

    /// Enters something, unless there is no memory for it. Returns where it is to be struck off. An interrupt may not take memory
    /// (`may_grow`); and may do this only if it interrupts what holds no lock.
    ///
    /// # Safety
    /// Its address is even. It lives until it was struck off, or a collection frees it.
    pub(crate) unsafe fn enter(&'static self, item: NonNull<()>, may_grow: bool) -> Option<&'static Place> {
        let mut may_grow = may_grow;
        loop {
            let mut free = self.free.lock();
            let taken = *free;
            if let Some(place) = taken {
                *free = place.next();
                // Relaxed: under the lock.
                place.0.store(item.as_ptr().map_addr(|address| !address), Ordering::Relaxed);
            }
            // The next one may be entered by an interrupt.
            let grows = free.is_none() && core::mem::take(&mut may_grow);
            drop(free);
            if grows {
                self.grow();
            }
            if taken.is_some() || !grows {
                return taken;
            }
        }
    }

    /// Strikes off what was entered there.
    pub(crate) fn strike(&self, place: &'static Place) {
        let mut free = self.free.lock();
        place.leave(*free);
        *free = Some(place);
    }

    /// What `look` says of each that is entered. It is called under the lock, with something that lives; what it returns is dropped
    /// without it.
    pub(crate) fn each<T>(&'static self, look: impl Fn(NonNull<()>) -> Option<T>) -> impl Iterator<Item = T> {
        let (mut pages, mut places) = (self.pages.iter(), [].iter());
        // By hand, because it is a third of what adapters come to.
        iter::from_fn(move || {
            loop {
                let Some(place): Option<&Place> = places.next() else {
                    // SAFETY: pages stay for ever.
                    places = unsafe { pages.next()?.as_ref() }.places.iter();
                    continue;
                };
                if place.entered().is_none() {
                    continue;
                }
                let free = self.free.lock();
                let seen = place.entered().and_then(&look);
                drop(free);
                if seen.is_some() {
                    return seen;
                }
            }
        })
    }
}

/// What of all that is entered is about to be freed by a collection is struck off. Nobody holds a roll's lock.
#[cfg(any(test, target_os = "none"))]
pub(crate) fn forget(is_freed: &dyn Fn(usize) -> bool) {
    // SAFETY: rolls that are known stay for ever.
    for roll in ROLLS.iter().map(|roll| unsafe { roll.as_ref() }) {
        // SAFETY: as pages do.
        for place in roll.pages.iter().flat_map(|page| unsafe { page.as_ref() }.places.iter()) {
            if place.entered().is_some_and(|item| is_freed(item.addr().get())) {
                roll.strike(place);
            }
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{Place, Roll, forget};
    use std::boxed::Box;
    use std::collections::BTreeSet;
    use std::ptr::NonNull;
    use std::vec::Vec;

    fn fresh() -> &'static Roll {
        Box::leak(Box::new(Roll::new()))
    }

    fn enter(roll: &'static Roll, item: &'static u64) -> &'static Place {
        // SAFETY: its address is even, and it lives for ever.
        unsafe { roll.enter(NonNull::from(item).cast(), true) }.expect("there is memory")
    }

    fn seen(roll: &'static Roll) -> Vec<u64> {
        // SAFETY: what these tests enter are numbers that live for ever.
        roll.each(|item| Some(unsafe { *item.cast::<u64>().as_ref() })).collect()
    }

    fn numbers(range: std::ops::Range<u64>) -> Vec<&'static u64> {
        range.map(|number| &*Box::leak(Box::new(number))).collect()
    }

    #[test]
    fn who_is_entered_is_seen_once_until_struck_off() {
        let roll = fresh();
        assert_eq!(seen(roll), []);
        let places: Vec<_> = numbers(0..1000).into_iter().map(|item| enter(roll, item)).collect();
        let mut all = seen(roll);
        all.sort_unstable();
        assert_eq!(all, (0..1000).collect::<Vec<_>>());
        for (number, place) in places.iter().enumerate().filter(|(number, _)| number % 3 != 0) {
            roll.strike(place);
            assert!(!seen(roll).contains(&(number as u64)));
        }
        let pages = roll.pages.iter().count();
        numbers(1000..1600).into_iter().for_each(|item| _ = enter(roll, item));
        assert_eq!(roll.pages.iter().count(), pages, "places are used again");
        let mut all = seen(roll);
        all.sort_unstable();
        assert_eq!(all, (0..1000).filter(|n| n % 3 == 0).chain(1000..1600).collect::<Vec<_>>());
    }

    /// An interrupt finds a place though it may take no memory, if whoever came before could take some.
    #[test]
    fn one_place_stays_free() {
        let roll = fresh();
        let item = numbers(0..1)[0];
        // SAFETY: its address is even, and it lives for ever.
        let at_once = || unsafe { roll.enter(NonNull::from(item).cast(), false) };
        assert!(at_once().is_none(), "there is no page yet");
        for _ in 0..300 {
            enter(roll, item);
            let place = at_once().expect("one is free");
            roll.strike(place);
        }
    }

    #[test]
    fn what_a_collection_frees_is_forgotten() {
        let roll = fresh();
        let items = numbers(0..300);
        items.iter().for_each(|item| _ = enter(roll, item));
        let freed: BTreeSet<usize> =
            items.iter().step_by(2).map(|item| std::ptr::from_ref(*item).addr()).collect();
        forget(&|address| freed.contains(&address));
        let mut left = seen(roll);
        left.sort_unstable();
        assert_eq!(left, (0..300).filter(|number| number % 2 == 1).collect::<Vec<_>>());
        enter(roll, items[0]);
        assert!(seen(roll).contains(&0));
    }

    /// While others come and go, who stays is seen exactly once each time, and nobody is seen before he is entered, or afterwards.
    #[test]
    fn who_stays_is_seen_while_others_come_and_go() {
        let roll = fresh();
        let stay: Vec<_> = numbers(0..200);
        stay.iter().for_each(|item| _ = enter(roll, item));
        std::thread::scope(|scope| {
            for thread in 1..4_u64 {
                scope.spawn(move || {
                    for round in 0..200 {
                        // What is struck off is overwritten: to see it would be seen.
                        let items: Vec<*mut u64> =
                            (0..50).map(|_| Box::into_raw(Box::new(1000 * thread + round))).collect();
                        // SAFETY: each is freed after it was struck off.
                        unsafe {
                            let enter = |item: &*mut u64| {
                                roll.enter(NonNull::new_unchecked(*item).cast(), true).expect("memory")
                            };
                            let places: Vec<_> = items.iter().map(enter).collect();
                            for (item, place) in items.into_iter().zip(places) {
                                roll.strike(place);
                                *item = u64::MAX;
                                drop(Box::from_raw(item));
                            }
                        }
                    }
                });
            }
            for _ in 0..100 {
                let all = seen(roll);
                for number in 0..200 {
                    assert_eq!(all.iter().filter(|seen| **seen == number).count(), 1, "{number}");
                }
                assert!(all.iter().all(|number| *number < 200 || (1000..5000).contains(number)));
            }
        });
        assert_eq!(seen(roll).len(), 200);
    }
}
