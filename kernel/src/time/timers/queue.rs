//! One core's timers: what is urgent, and the rest. The lock around it is in `per_core.rs`.
//!
//! What wakes a process of priority `Max` or `High` is urgent. It is kept apart, so that the core knows when the next of it is
//! due, and it fires first among what is due.

use core::ptr::NonNull;
use core::task::Waker;

use super::owned;
use super::timer::Timer;
use crate::queue;
use crate::sync::{PreemptGuard, take_kept};

type Heap = queue::Heap<Timer>;

/// The timers of one core.
pub(super) struct TimerQueue {
    urgent: Heap,
    other: Heap,
    /// How many were ever armed: of several with one deadline the one that was armed first fires first.
    armed: u64,
}

/// A timer that has fired.
pub(super) struct Fired {
    /// Who is to be woken.
    pub waker: Option<Waker>,
    /// Whether it did not count as work.
    pub background: bool,
}

impl TimerQueue {
    pub(super) const fn new() -> Self {
        Self { urgent: Heap::new(), other: Heap::new(), armed: 0 }
    }

    fn heap_of(&mut self, timer: NonNull<Timer>) -> &mut Heap {
        // SAFETY: the callers promise a timer that is theirs, or in this queue.
        if unsafe { timer.as_ref() }.urgent { &mut self.urgent } else { &mut self.other }
    }

    /// Puts a timer in, to fire at `deadline`.
    ///
    /// # Safety
    /// The timer stays where it is until it has fired or was taken out, and is in no queue.
    pub(super) unsafe fn insert(&mut self, timer: NonNull<Timer>, deadline: u64) {
        let number = self.armed;
        self.armed += 1;
        // SAFETY: by contract.
        unsafe {
            self.heap_of(timer).insert(timer, deadline, number);
            (*timer.as_ptr()).state.set_armed(true);
        }
    }

    /// Takes a timer out.
    ///
    /// # Safety
    /// It is in this queue.
    pub(super) unsafe fn remove(&mut self, timer: NonNull<Timer>) {
        // SAFETY: by contract; whether it is urgent does not change while it is armed.
        unsafe {
            self.heap_of(timer).remove(timer);
            (*timer.as_ptr()).state.set_armed(false);
        }
    }

    /// When the next urgent one is due.
    pub(super) fn next_urgent(&self) -> Option<u64> {
        deadline_of_first(&self.urgent)
    }

    /// When the next is due.
    pub(super) fn next(&self) -> Option<u64> {
        let other = deadline_of_first(&self.other);
        self.next_urgent().into_iter().chain(other).min()
    }

    /// Fires one that is due at `now`, an urgent one if there is one, or only such a one. `None` when nothing is due.
    #[inline(never)]
    pub(super) fn fire(&mut self, now: u64, only_urgent: bool, here: &PreemptGuard) -> Option<Fired> {
        let is_urgent_due = self.next_urgent().is_some_and(|deadline| deadline <= now);
        let heap = if only_urgent || is_urgent_due { &mut self.urgent } else { &mut self.other };
        fire_first(heap, now, here)
    }

    /// As [`Self::fire`], but leaves what is not urgent.
    #[inline(always)]
    pub(super) fn fire_urgent(&mut self, now: u64, here: &PreemptGuard) -> Option<Fired> {
        fire_first(&mut self.urgent, now, here)
    }
}

/// Fires the first, if it is due at `now`.
#[inline(always)]
fn fire_first(heap: &mut Heap, now: u64, here: &PreemptGuard) -> Option<Fired> {
    let timer = heap.first()?;
    // SAFETY: it is in the heap, under whose queue's lock the caller works.
    unsafe {
        if timer.as_ref().node.deadline() > now {
            return None;
        }
        heap.remove(timer);
        owned::unlink(timer, here);
        // Its parts, and not the whole, because its owner may look at the state without the lock.
        let timer = timer.as_ptr();
        let fired = Fired { waker: take_kept(&mut (*timer).waker), background: (*timer).background };
        // The last: from now on it may be its owner's.
        (*timer).state.set_fired();
        Some(fired)
    }
}

fn deadline_of_first(heap: &Heap) -> Option<u64> {
    // SAFETY: it is in the heap, under whose queue's lock the caller works.
    heap.first().map(|first| unsafe { first.as_ref() }.node.deadline())
}

#[cfg(test)]
mod tests {
    use super::TimerQueue;
    use crate::random::Random;
    use crate::sync::PreemptGuard;
    use crate::time::timers::state::State;
    use crate::time::timers::timer::Timer;
    use std::ptr::NonNull;

    const COUNT: usize = 300;

    /// A queue, its timers, and what is in it: whether each is not urgent, its deadline, its number.
    struct Checked {
        queue: TimerQueue,
        timers: Vec<Timer>,
        model: Vec<(bool, u64, usize)>,
    }

    impl Checked {
        fn new() -> Self {
            let timers = (0..COUNT).map(|_| Timer::new(false)).collect();
            Self { queue: TimerQueue::new(), timers, model: Vec::new() }
        }

        fn pointer(&mut self, number: usize) -> NonNull<Timer> {
            NonNull::new(self.timers.as_mut_ptr().wrapping_add(number)).expect("not null")
        }

        fn insert(&mut self, number: usize, is_urgent: bool, deadline: u64) {
            let timer = self.pointer(number);
            // SAFETY: the vector is not changed any more, and each is put in once.
            unsafe {
                (*timer.as_ptr()).urgent = is_urgent;
                self.queue.insert(timer, deadline);
            }
            self.model.push((!is_urgent, deadline, number));
            self.model.sort();
        }

        fn remove(&mut self, at: usize) {
            let (_, _, number) = self.model.remove(at);
            let timer = self.pointer(number);
            // SAFETY: the model says that it is in the queue.
            unsafe { self.queue.remove(timer) };
        }

        /// Fires what is due, and looks whether that is what is due, in that order.
        fn fire(&mut self, now: u64) {
            let due = self.model.extract_if(.., |entry| entry.1 <= now).collect::<Vec<_>>();
            for (_, deadline, number) in due {
                assert!(
                    self.queue.fire(now, false, &PreemptGuard::new()).is_some(),
                    "{number} is due at {deadline}, now {now}"
                );
                assert_eq!(self.timers[number].state.get(), State::Fired, "due at {deadline}, now {now}");
            }
            assert!(self.queue.fire(now, false, &PreemptGuard::new()).is_none(), "one more fired at {now}");
            for &(_, deadline, number) in &self.model {
                assert_eq!(self.timers[number].state.get(), State::Armed, "due at {deadline}, now {now}");
            }
        }

        fn check_deadlines(&self) {
            let urgent = self.model.iter().filter(|entry| !entry.0).map(|entry| entry.1).min();
            assert_eq!(self.queue.next_urgent(), urgent, "the next urgent deadline");
            assert_eq!(self.queue.next(), self.model.iter().map(|entry| entry.1).min(), "the next deadline");
        }
    }

    /// A moment at any distance, near ones as often as far ones.
    fn any_distance(random: &Random) -> u64 {
        random.bits() >> random.below(64)
    }

    /// The promise: a timer fires in the first pass that reaches its deadline, and in none before, however far that is and
    /// however far the clock jumps; what is urgent first, and of each kind in the order of the deadlines, then of arming.
    #[test]
    fn every_distance_and_every_jump_agrees_with_a_sorted_list() {
        for seed in 1..=60 {
            let random = Random::new(seed, 0);
            let (mut timers, mut now) = (Checked::new(), 0_u64);
            for number in 0..COUNT {
                let deadline = match random.below(8) {
                    0 => u64::MAX,
                    1 => now,
                    2 => now.saturating_sub(any_distance(&random)),
                    3 => now.saturating_add(random.below(3) as u64),
                    _ => now.saturating_add(any_distance(&random)),
                };
                timers.insert(number, random.below(3) == 0, deadline);
                timers.check_deadlines();
                if random.below(5) == 0 {
                    timers.remove(random.below(timers.model.len()));
                    timers.check_deadlines();
                }
                let next = timers.queue.next().unwrap_or(now);
                now = match random.below(6) {
                    // To the next timer, or just before it.
                    0 => now.max(next.saturating_sub(random.below(2) as u64)),
                    1 => now.saturating_add(any_distance(&random) >> random.below(64)),
                    _ => now.saturating_add(random.below(100) as u64),
                };
                timers.fire(now);
                timers.check_deadlines();
            }
            timers.fire(u64::MAX);
        }
    }
}
