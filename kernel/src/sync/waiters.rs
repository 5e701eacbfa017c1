//! Those who wait for one event: any number, all of whom are told when it comes.
//!
//! Each has a [`Seat`], known by the number of a ticket. A seat is asked (polled) under the list's lock, in the same hold
//! in which its waker is left, so an event cannot fall between the look and the waiting. A waiter that is told is taken
//! from the list: a seat whose ticket is not in the list any more was told, whatever waker it is polled with next.
//!
//! Nothing that is linked lies in the waiting future: the list holds wakers and numbers, in memory of its own. So a
//! crashed waiter leaves an entry behind, which goes when the event comes.
//!
//! Wakers are cloned, woken and dropped, and memory is allocated and freed, outside the lock. A few processes can wait without
//! any memory from the heap. Beyond those, **without memory**, a seat asks to be polled again at once, until there is room or
//! the event has come.

use crate::arch::atomic::const_fn;
use alloc::vec::Vec;
use core::mem;
use core::task::{Poll, Waker};

use super::kept_waker::{is_kept_for, keep_waker};
use super::{PaidBy, SpinLock};

/// This many can wait although memory is used up.
const FEW: usize = 4;

struct Waiter {
    ticket: u64,
    waker: Waker,
}

struct Inside {
    few: [Option<Waiter>; FEW],
    /// Grows only outside the lock.
    more: Vec<Waiter>,
    /// The last ticket that was given out.
    last: u64,
}

impl Inside {
    const EMPTY: Self = Self { few: [const { None }; FEW], more: Vec::new(), last: 0 };

    fn find(&mut self, ticket: u64) -> Option<&mut Waiter> {
        self.few.iter_mut().flatten().chain(&mut self.more).find(|waiter| waiter.ticket == ticket)
    }

    /// Puts a waiter in and returns its ticket, or the waker when there is no room.
    fn add(&mut self, waker: Waker) -> Result<u64, Waker> {
        let free = self.few.iter_mut().find(|place| place.is_none());
        if free.is_none() && self.more.len() == self.more.capacity() {
            return Err(waker);
        }
        self.last += 1;
        let waiter = Waiter { ticket: self.last, waker };
        match free {
            Some(place) => *place = Some(waiter),
            // There is room, so this allocates nothing.
            None => self.more.push(waiter),
        }
        Ok(self.last)
    }

    fn remove(&mut self, ticket: u64) -> Option<Waiter> {
        let is_it = |waiter: &Waiter| waiter.ticket == ticket;
        if let Some(place) = self.few.iter_mut().find(|place| place.as_ref().is_some_and(is_it)) {
            return place.take();
        }
        self.more.iter().position(is_it).map(|index| self.more.swap_remove(index))
    }
}

/// Who waits for an event.
pub struct Waiters {
    inside: SpinLock<Inside>,
}

impl Waiters {
    const_fn! {
        /// Without waiters.
        pub fn new() -> Self {
            Self { inside: SpinLock::new(Inside::EMPTY) }
        }
    }

    /// A place for one more waiter, which does not wait yet.
    pub const fn seat(&self) -> Seat<'_> {
        Seat { waiters: self, ticket: 0 }
    }

    /// The event has come: wakes all who wait. `first` is called in the hold of the lock that empties the list. Returns
    /// whether anybody waited.
    pub fn tell_all(&self, first: impl FnOnce()) -> bool {
        let (few, more) = {
            let mut inside = self.inside.lock();
            first();
            (mem::replace(&mut inside.few, Inside::EMPTY.few), mem::take(&mut inside.more))
        };
        let mut any = false;
        for waiter in few.into_iter().flatten().chain(more) {
            any = true;
            waiter.waker.wake();
        }
        any
    }

    /// Makes room for more, outside the lock. Returns whether there is memory for it.
    fn grow(&self) -> bool {
        let needed = 2 * self.inside.lock().more.len().max(FEW);
        // It stays when the caller has gone.
        let _nobody = PaidBy::nobody();
        let mut room = Vec::new();
        if room.try_reserve(needed).is_err() {
            return false;
        }
        let mut inside = self.inside.lock();
        // Another caller may have made room meanwhile.
        if room.capacity() > inside.more.capacity() {
            room.append(&mut inside.more);
            mem::swap(&mut room, &mut inside.more);
        }
        drop(inside);
        // What was replaced is freed after the lock.
        drop(room);
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
    /// 0 before it first waited.
    ticket: u64,
}

impl Seat<'_> {
    /// Waits until `is_over`, which is asked under the lock and told whether this seat has been told of the event since it
    /// last waited. It must be short, and take no lock.
    pub fn poll(&mut self, waker: &Waker, mut is_over: impl FnMut(bool) -> bool) -> Poll<()> {
        let mut spare: Option<Waker> = None;
        loop {
            let mut inside = self.waiters.inside.lock();
            let known = inside.find(self.ticket);
            if is_over(self.ticket != 0 && known.is_none()) {
                return Poll::Ready(());
            }
            if known.as_ref().is_some_and(|known| is_kept_for(&known.waker, waker)) {
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
                let previous = mem::replace(&mut known.waker, new);
                drop(inside);
                drop(previous);
                return Poll::Pending;
            }
            match inside.add(new) {
                Ok(ticket) => {
                    self.ticket = ticket;
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
    fn drop(&mut self) {
        if self.ticket != 0 {
            let left = self.waiters.inside.lock().remove(self.ticket);
            // After the lock: dropping a waker may free a process.
            drop(left);
        }
    }
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::{FEW, Waiters};
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
