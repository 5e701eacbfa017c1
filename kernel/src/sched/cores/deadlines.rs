//! Processes of priority `High` that have a deadline and wait: the one that is due first leaves first, of several that are due at once
//! the one that came first.
//!
//! Each core has such a queue, as a part of what waits there with priority `High`, and the global scheme has one. The owner puts
//! processes in, and takes the first. Thieves take the first that is not pinned: those are kept apart, because a thief must not
//! have a pinned process in hand.
//!
//! One lock is around it, never taken in an interrupt, for as long as one process is put in or taken out: O(log n) steps. When the first
//! is due can be read without it, also by an interrupt that has met the core in the middle of a change.

use core::ptr::NonNull;

use crate::arch::atomic::{AtomicU64, AtomicUsize, Ordering, const_fn};
use crate::queue::{HasNode, Heap};
use crate::sched::process::{Header, NEVER, Runnable};
use crate::sync::SpinLock;

/// The processes with a deadline that wait in one place.
pub(crate) struct Deadlines {
    waiting: SpinLock<Waiting>,
    // Written under the lock alone. Relaxed, all: hints for other cores; the owner sees what it has put in itself, and who must not
    // miss what others have looks after a full fence, as for the other queues.
    /// When the first is due, [`NEVER`] if none waits.
    earliest: AtomicU64,
    /// How many wait that are not pinned.
    free: AtomicUsize,
    /// How many that are.
    bound: AtomicUsize,
}

struct Waiting {
    free: Heap<Header>,
    bound: Heap<Header>,
    /// How many were ever put in.
    number: u64,
}

/// What decides between two: when the first of a heap is due, and its number.
fn first(heap: &Heap<Header>) -> Option<(u64, u64)> {
    // SAFETY: what waits is alive, and the caller has the lock.
    heap.first().map(|first| unsafe { (*Header::node(first.as_ptr())).key() })
}

impl Deadlines {
    const_fn! {
        /// None.
        pub(crate) fn new() -> Self {
            Self {
                waiting: SpinLock::new(Waiting { free: Heap::new(), bound: Heap::new(), number: 0 }),
                earliest: AtomicU64::new(NEVER),
                free: AtomicUsize::new(0),
                bound: AtomicUsize::new(0),
            }
        }
    }

    /// Puts in a process that has a deadline. Not in an interrupt.
    pub(crate) fn push(&self, process: Runnable) {
        let (is_pinned, due, process) = (process.is_pinned(), process.due_in_queue(), process.into_pointer());
        let mut waiting = self.waiting.lock();
        let number = waiting.number;
        waiting.number += 1;
        let (heap, count) =
            if is_pinned { (&mut waiting.bound, &self.bound) } else { (&mut waiting.free, &self.free) };
        // SAFETY: what is in hand is alive and in no heap; processes may be handed to any core.
        unsafe { heap.insert(process, due, number) };
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        self.publish(&waiting);
    }

    /// Takes the first.
    pub(crate) fn pop(&self) -> Option<Runnable> {
        if self.is_empty() { None } else { self.take(true) }
    }

    /// Takes the first that is not pinned.
    pub(crate) fn steal(&self) -> Option<Runnable> {
        if self.stealable() == 0 { None } else { self.take(false) }
    }

    fn take(&self, pinned_too: bool) -> Option<Runnable> {
        let mut waiting = self.waiting.lock();
        let bound_first = match (first(&waiting.free), first(&waiting.bound)) {
            (Some(free), Some(bound)) => bound < free,
            (free, _) => free.is_none(),
        };
        let (heap, count) = match pinned_too && bound_first {
            true => (&mut waiting.bound, &self.bound),
            false => (&mut waiting.free, &self.free),
        };
        let process: NonNull<Header> = heap.first()?;
        // SAFETY: it is in this heap.
        unsafe { heap.remove(process) };
        count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
        self.publish(&waiting);
        // SAFETY: what comes from a queue is in hand.
        Some(unsafe { Runnable::new(process) })
    }

    fn publish(&self, waiting: &Waiting) {
        let due = |heap| first(heap).map_or(NEVER, |(due, _)| due);
        self.earliest.store(due(&waiting.free).min(due(&waiting.bound)), Ordering::Relaxed);
    }

    /// When the first is due, in clock ticks; [`NEVER`] if none waits.
    #[inline(always)]
    pub(crate) fn earliest(&self) -> u64 {
        self.earliest.load(Ordering::Relaxed)
    }

    /// Whether none waits.
    #[inline(always)]
    pub(crate) fn is_empty(&self) -> bool {
        self.earliest() == NEVER
    }

    /// How many wait that a thief could take.
    pub(crate) fn stealable(&self) -> usize {
        self.free.load(Ordering::Relaxed)
    }

    /// How many wait that are pinned.
    pub(crate) fn bound(&self) -> usize {
        self.bound.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::Deadlines;
    use crate::arch::CoreId;
    use crate::random::Random;
    use crate::sched::process::{Deadline, Header, NEVER, Priority, Runnable, Step, VTable};
    use crate::time::of_ticks;
    use crate::watch::Exit;
    use std::collections::BTreeSet;
    use std::ptr::NonNull;

    unsafe fn step(_: NonNull<Header>) -> Step {
        unreachable!("nothing runs here")
    }

    unsafe fn crash(_: NonNull<Header>, _: Exit) {}

    unsafe fn free(_: NonNull<Header>) {}

    static VTABLE: VTable = VTable {
        name: || "none",
        step,
        cancel: Some(step),
        crash,
        piece: None,
        free,
        detach: None,
        is_to_end: None,
        at_work: None,
    };

    /// Processes in a queue, and what is in it: whether each is pinned, when it is due, its number and its place.
    struct Checked {
        queue: Deadlines,
        processes: Vec<Header>,
        model: BTreeSet<(u64, u64, bool, usize)>,
        number: u64,
    }

    impl Checked {
        fn push(&mut self, index: usize, now: u64) {
            let process = &self.processes[index];
            process.end_job();
            process.set_enqueued_at(now);
            let entry = (process.due_in_queue(), self.number, process.is_pinned(), index);
            self.number += 1;
            // SAFETY: it is alive, and in no list, as the model says.
            self.queue.push(unsafe { Runnable::new(NonNull::from(process)) });
            assert!(self.model.insert(entry), "put in once");
        }

        fn is_in(&self, index: usize) -> bool {
            self.model.iter().any(|entry| entry.3 == index)
        }

        /// Takes the first, or the first that is not pinned.
        fn take(&mut self, pinned_too: bool) {
            let taken = if pinned_too { self.queue.pop() } else { self.queue.steal() };
            let expected = self.model.iter().find(|entry| pinned_too || !entry.2).copied();
            let place = |index: usize| NonNull::from(&self.processes[index]);
            let first = expected.map(|entry| place(entry.3));
            assert_eq!(taken.map(Runnable::into_pointer), first, "which one left");
            if let Some(entry) = expected {
                self.model.remove(&entry);
            }
        }

        fn check(&self) {
            let earliest = self.model.first().map_or(NEVER, |entry| entry.0);
            assert_eq!(self.queue.earliest(), earliest, "when the first is due");
            assert_eq!(self.queue.is_empty(), self.model.is_empty());
            let bound = self.model.iter().filter(|entry| entry.2).count();
            assert_eq!((self.queue.stealable(), self.queue.bound()), (self.model.len() - bound, bound));
        }
    }

    #[test]
    fn it_agrees_with_a_sorted_set() {
        const COUNT: usize = 100;
        for seed in 1..=40 {
            let random = Random::new(seed, 0);
            // Few different deadlines, and many; also longer than the clock can count.
            let longest = [3, 1000, u64::MAX][seed as usize % 3];
            let process = |_| {
                let affinity = if random.below(3) == 0 { CoreId::BOOT.mask() } else { u64::MAX };
                let deadline = Deadline::new(of_ticks(random.bits() % longest));
                Header::new(&VTABLE, Priority::High, affinity, CoreId::BOOT).with_deadline(deadline)
            };
            let processes = (0..COUNT).map(process).collect();
            let queue = Deadlines::new();
            let mut checked = Checked { queue, processes, model: BTreeSet::new(), number: 0 };
            for now in 0..2000 {
                let index = random.below(COUNT);
                if !checked.is_in(index) {
                    checked.push(index, now + random.bits() % longest.min(50));
                }
                if random.below(2) == 0 {
                    checked.take(random.below(3) > 0);
                }
                checked.check();
            }
            while !checked.model.is_empty() {
                checked.take(true);
                checked.check();
            }
            checked.take(true);
        }
    }

    #[test]
    fn a_job_is_due_before_whatever_has_no_deadline_and_stays_so_until_it_begins_anew() {
        let of = |deadline| {
            Header::new(&VTABLE, Priority::High, u64::MAX, CoreId::BOOT)
                .with_deadline(Deadline::new(of_ticks(deadline)))
        };
        let (short, long) = (of(10), of(u64::MAX));
        let none = Header::new(&VTABLE, Priority::High, u64::MAX, CoreId::BOOT);
        let due = |process: &Header, now| {
            process.set_enqueued_at(now);
            assert_eq!(process.due_in_queue(), process.due());
            process.due()
        };
        let ten = 100 + crate::time::ticks_of(of_ticks(10));
        assert_eq!(due(&short, 100), ten);
        assert!(ten < due(&long, 100) && due(&long, 100) < due(&none, 100));
        assert_eq!((none.due(), none.deadline()), (NEVER, None));
        assert_eq!(due(&short, 5000), ten, "enqueued again, in the same job");
        short.end_job();
        assert_eq!(due(&short, u64::MAX), NEVER - 1, "nothing is due at the end of the clock");
    }
}
