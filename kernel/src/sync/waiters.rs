//! Those who wait for one event: any number, all of whom are told when it comes.
//!
//! Each has a [`Seat`], known by the number of a ticket. A seat is asked (polled) under the list's lock, in the same hold
//! in which its waker is left, so an event cannot fall between the look and the waiting. A waiter that is told is taken
//! from the list: a seat whose ticket is not in the list any more was told, whatever waker it is polled with next.
//!
//! Nothing that is linked lies in the waiting future: the list holds wakers and numbers, in memory of its own. So a
//! crashed waiter leaves an entry behind, which goes when the event comes.
//!
//! **Whoever tells may be killed in the middle of it**, at the end of any section of the kernel's. So a waiter is taken out and woken in
//! one section, and such sections are short, however many wait: a few are told in each. Who is told of later than that is on the list until
//! then, but [counts](List::is_to_be_told) as told from the beginning; and each of those that are woken goes on with the telling when it is polled.
//!
//! Who is urgent is told before all others; otherwise they are told in the order in which they came.
//!
//! Wakers are cloned, woken and dropped, and memory is allocated and freed, outside the lock. A few processes can wait without
//! any memory from the heap. Beyond those, **without memory**, a seat asks to be polled again at once, until there is room or
//! the event has come.

use crate::arch::atomic::const_fn;
use alloc::vec::Vec;
use core::mem;
use core::task::{Poll, Waker};

use super::kept_waker::{is_kept_for, is_kept_for_urgent, keep_waker};
use super::{PaidBy, SpinGuard, SpinLock};
use list::{List, OTHER, Page, Place, URGENT};

mod list;

/// This many are told in one section.
/// A wake-up takes some 280 instructions.
const AT_ONCE: usize = 3;

/// Who waits for an event.
pub struct Waiters {
    inside: SpinLock<List>,
}

impl Waiters {
    const_fn! {
        /// Without waiters.
        pub fn new() -> Self {
            Self { inside: SpinLock::new(List::EMPTY) }
        }
    }

    /// A place for one more waiter, which does not wait yet.
    pub const fn seat(&self) -> Seat<'_> {
        Seat { waiters: self, place: Place::NOWHERE }
    }

    /// The event has come: wakes all who wait. `first` is called in the hold of the lock from which on they count as told. Returns
    /// whether anybody waited.
    pub fn tell_all(&self, first: impl FnOnce()) -> bool {
        let mut inside = self.inside.lock();
        first();
        inside.tell();
        let any = inside.has_to_tell();
        if self.tell_some(inside) {
            self.tell_rest();
        }
        any
    }

    /// As [`Self::tell_all`], but in one section, for a caller that has disabled preemption. Whether any are left, who are told by
    /// [`Self::tell_rest`], or by those who were told if the caller comes to its end before.
    // Mostly nobody waits, and what calls this if somebody does is to save few registers.
    #[inline(never)]
    pub(crate) fn tell_first(&self) -> bool {
        let mut inside = self.inside.lock();
        inside.tell();
        self.tell_some(inside)
    }

    /// Wakes a few of those who wait, the first ones, in one section. Whether there are others, who do not count as told: the caller tells them by
    /// [`Self::tell_few_more`], or knows that somebody will.
    pub(crate) fn tell_few(&self) -> bool {
        let mut inside = self.inside.lock();
        inside.begin_few();
        Self::wake_some(inside, List::take_few, List::has_few)
    }

    /// A few more of those who waited at the last [`Self::tell_few`], and whether there are others.
    pub(crate) fn tell_few_more(&self) -> bool {
        Self::wake_some(self.inside.lock(), List::take_few, List::has_few)
    }

    /// Whether anybody urgent is left of those who waited at the last [`Self::tell_few`].
    pub(crate) fn has_urgent_few(&self) -> bool {
        self.inside.lock().has_urgent_few()
    }

    /// Tells those who are left to be told, if there are any.
    #[cold]
    pub(crate) fn tell_rest(&self) {
        while self.tell_some(self.inside.lock()) {}
    }

    /// Wakes some of those who are left to be told. Whether there are more.
    fn tell_some(&self, inside: SpinGuard<'_, List>) -> bool {
        Self::wake_some(inside, List::take_told, List::has_to_tell)
    }

    /// Takes out some and wakes them. Whether there are more.
    fn wake_some(
        mut inside: SpinGuard<'_, List>,
        take: fn(&mut List) -> Option<Waker>,
        has_more: fn(&mut List) -> bool,
    ) -> bool {
        let taken: [_; AT_ONCE] = core::array::from_fn(|_| take(&mut inside));
        let are_left = has_more(&mut inside);
        let _here = inside.unlock();
        taken.into_iter().flatten().for_each(Waker::wake);
        are_left
    }

    /// Nobody waits in that place any more.
    #[cold]
    #[inline(never)]
    fn give_up(&self, place: Place) {
        let mut inside = self.inside.lock();
        let own = inside.remove(place);
        let are_left = inside.is_to_be_told(place);
        let unused = inside.take_unused();
        drop(inside);
        // After the lock: dropping a waker may free a process.
        drop((own, unused));
        if are_left {
            self.tell_rest();
        }
    }

    /// Makes room for more, outside the lock. Returns whether there is memory for it.
    fn grow(&self) -> bool {
        let wanted = self.inside.lock().pages_wanted();
        // It stays when the caller has gone.
        let _nobody = PaidBy::nobody();
        let mut room = Vec::new();
        if wanted.is_some_and(|wanted| room.try_reserve(wanted).is_err()) {
            return false;
        }
        let mut page = Page::new();
        if page.is_none() {
            return false;
        }
        // What is left over is freed after the lock.
        self.inside.lock().grow(&mut room, &mut page);
        true
    }
}

impl Default for Waiters {
    fn default() -> Self {
        Self::new()
    }
}

/// The place of one waiter. Dropping it gives it up.
pub struct Seat<'a> {
    waiters: &'a Waiters,
    /// Nowhere before it first waited.
    place: Place,
}

impl Seat<'_> {
    /// Waits until `is_over`, which is asked under the lock and told whether this seat has been told of the event since it
    /// last waited. It must be short, and take no lock.
    pub fn poll(&mut self, waker: &Waker, mut is_over: impl FnMut(bool) -> bool) -> Poll<()> {
        let mut spare: Option<Waker> = None;
        loop {
            let mut inside = self.waiters.inside.lock();
            if inside.is_to_be_told(self.place) {
                // Whoever told it has not come to its end, and may have been killed.
                let own = inside.remove(self.place);
                drop(inside);
                drop(own);
                self.waiters.tell_rest();
                continue;
            }
            let known = inside.waker(self.place);
            if is_over(self.place.is_somewhere() && known.is_none()) {
                // Here rather than by who tells, who may have disabled preemption: there are as many pages as have ever waited at once.
                let unused = inside.take_unused();
                drop(inside);
                drop(unused);
                return Poll::Ready(());
            }
            if known.as_ref().is_some_and(|known| is_kept_for(known, waker)) {
                return Poll::Pending;
            }
            let Some(new) = spare.take() else {
                drop(inside);
                spare = keep_waker(waker);
                if spare.is_none() {
                    waker.wake_by_ref();
                    return Poll::Pending;
                }
                continue;
            };
            if let Some(known) = known {
                let previous = mem::replace(known, new);
                drop(inside);
                drop(previous);
                return Poll::Pending;
            }
            let row = if is_kept_for_urgent(&new) { URGENT } else { OTHER };
            match inside.add(new, row) {
                Ok(place) => {
                    self.place = place;
                    return Poll::Pending;
                }
                Err(new) => {
                    drop(inside);
                    spare = Some(new);
                    if !self.waiters.grow() {
                        waker.wake_by_ref();
                        return Poll::Pending;
                    }
                }
            }
        }
    }
}

impl Drop for Seat<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.place.is_somewhere() {
            self.waiters.give_up(self.place);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::list::FEW;
    use super::{AT_ONCE, Waiters};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};
    use std::task::{Poll, Wake, Waker};

    #[derive(Default)]
    struct Woken(AtomicU32);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn waker() -> (Arc<Woken>, Waker) {
        let woken = Arc::new(Woken::default());
        (woken.clone(), woken.into())
    }

    fn times(woken: &Woken) -> u32 {
        woken.0.load(Ordering::Relaxed)
    }

    #[test]
    fn another_waker_is_not_the_event() {
        let (waiters, (first, first_waker), (second, second_waker)) = (Waiters::new(), waker(), waker());
        let mut seat = waiters.seat();
        assert_eq!(seat.poll(&first_waker, |told| told), Poll::Pending);
        assert_eq!(seat.poll(&second_waker, |told| told), Poll::Pending);
        assert!(waiters.tell_all(|| ()));
        assert_eq!((times(&first), times(&second)), (0, 1), "the waker that it was polled with last");
        assert_eq!(seat.poll(&first_waker, |told| told), Poll::Ready(()));
        assert_eq!(seat.poll(&first_waker, |told| told), Poll::Ready(()), "polled again");
    }

    #[test]
    fn each_seat_is_told_for_itself() {
        let (waiters, (woken, waker)) = (Waiters::new(), waker());
        let mut early = waiters.seat();
        assert_eq!(early.poll(&waker, |told| told), Poll::Pending);
        assert!(waiters.tell_all(|| ()));
        // With the same waker, after the event.
        let mut late = waiters.seat();
        assert_eq!(late.poll(&waker, |told| told), Poll::Pending);
        assert_eq!(early.poll(&waker, |told| told), Poll::Ready(()));
        assert_eq!(late.poll(&waker, |told| told), Poll::Pending);
        assert_eq!(times(&woken), 1);
    }

    /// Whoever tells is ended after the first section: those whom it has woken go on, whether they are polled or dropped.
    #[test]
    fn those_who_are_told_go_on_with_the_telling() {
        for is_polled in [true, false] {
            let (waiters, (woken, waker), (late, late_waker)) = (Waiters::new(), waker(), waker());
            let mut seats: Vec<_> = (0..5 * AT_ONCE).map(|_| waiters.seat()).collect();
            for seat in &mut seats {
                assert_eq!(seat.poll(&waker, |told| told), Poll::Pending);
            }
            let mut inside = waiters.inside.lock();
            inside.tell();
            assert!(waiters.tell_some(inside), "all were told at once");
            assert_eq!(times(&woken) as usize, AT_ONCE);
            let mut next = waiters.seat();
            assert_eq!(next.poll(&late_waker, |told| told), Poll::Pending, "it has come after the event");
            let mut first = seats.remove(0);
            if is_polled {
                assert_eq!(first.poll(&waker, |told| told), Poll::Ready(()));
            }
            drop(first);
            assert_eq!(times(&woken) as usize, 5 * AT_ONCE);
            assert_eq!(times(&late), 0);
            for seat in &mut seats {
                assert_eq!(seat.poll(&waker, |told| told), Poll::Ready(()));
            }
        }
    }

    #[test]
    fn any_number_can_wait_and_go() {
        let (waiters, (woken, waker)) = (Waiters::new(), waker());
        let count = 20 * FEW;
        let mut seats: Vec<_> = (0..count).map(|_| waiters.seat()).collect();
        for seat in &mut seats {
            assert_eq!(seat.poll(&waker, |told| told), Poll::Pending);
        }
        // Every other one, so that both ends of the list are covered.
        let mut number = 0;
        seats.retain(|_| {
            number += 1;
            number % 2 == 0
        });
        for seat in &mut seats {
            assert_eq!(seat.poll(&waker, |told| told), Poll::Pending);
        }
        assert!(waiters.tell_all(|| ()));
        assert_eq!(times(&woken) as usize, count / 2);
        for seat in &mut seats {
            assert_eq!(seat.poll(&waker, |told| told), Poll::Ready(()));
        }
        drop(seats);
        assert!(!waiters.tell_all(|| ()), "nobody is left");
        assert_eq!(Arc::strong_count(&woken), 2, "wakers are left");
    }
}
