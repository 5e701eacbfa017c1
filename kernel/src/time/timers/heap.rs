//! A leftist heap of timers: the earliest is at its root, and every change costs O(log n) at worst.
//!
//! Every timer comes before both its children. Its *rank* is the number of timers on the way from it to a place where a
//! right child is missing, going right: at most log2(n + 1), because of two children the one with the lower rank is the
//! right one. All work is a walk along such ways:
//!
//! 1. *Merge*: the two ways to the right are merged into one, in order. What hangs to the left of them stays where it is.
//! 2. *Mend*: back up that one way children change sides where they must, and ranks are set.
//!
//! To insert is to merge with a heap of one. To remove, wherever the timer is, is to merge its children into its place, and to
//! mend upwards until a rank is what it was. If ranks fell, they differ by one from step to step on the way up; if they rose,
//! that way is one to the right. Both are as long as a rank at most.
//!
//! Timers of one deadline are in the order of the numbers that they were put in with.
//!
//! After Crane, "Linear lists and priority queues as balanced binary trees" (1972), with links to parents. It takes no memory,
//! calls nothing and knows no clock; locks and deadlines of cores are in `per_core.rs`.

use core::ptr::{self, NonNull};

use super::timer::Timer;

/// A timer's place in a heap.
pub(crate) struct Node {
    left: *mut Timer,
    right: *mut Timer,
    parent: *mut Timer,
    deadline: u64,
    /// Of two with one deadline the lower comes first.
    number: u64,
    rank: u8,
}

impl Node {
    /// In no heap.
    pub(super) const NONE: Self = Self::new(0, 0);

    const fn new(deadline: u64, number: u64) -> Self {
        let nobody = ptr::null_mut();
        Self { left: nobody, right: nobody, parent: nobody, deadline, number, rank: 1 }
    }

    /// When it is due, in clock ticks.
    pub(super) fn deadline(&self) -> u64 {
        self.deadline
    }
}

/// Timers by deadline.
pub(super) struct Heap {
    root: *mut Timer,
}

// SAFETY: the timers in a heap are used under its queue's lock only, from whatever core.
unsafe impl Send for Heap {}

impl Heap {
    pub(super) const fn new() -> Self {
        Self { root: ptr::null_mut() }
    }

    /// The earliest.
    pub(super) fn first(&self) -> Option<NonNull<Timer>> {
        NonNull::new(self.root)
    }

    /// Puts a timer in.
    ///
    /// # Safety
    /// The timer is in no heap, and stays where it is until it was taken out.
    pub(super) unsafe fn insert(&mut self, timer: NonNull<Timer>, deadline: u64, number: u64) {
        let timer = timer.as_ptr();
        // SAFETY: by contract; what is in the heap is alive.
        unsafe {
            (*timer).node = Node::new(deadline, number);
            self.root = merge(self.root, timer);
        }
    }

    /// Takes a timer out.
    ///
    /// # Safety
    /// It is in this heap.
    pub(super) unsafe fn remove(&mut self, timer: NonNull<Timer>) {
        let timer = timer.as_ptr();
        // SAFETY: by contract, so its parent and its children are in this heap, too.
        unsafe {
            let Node { left, right, parent, .. } = (*timer).node;
            let heir = merge(left, right);
            if !heir.is_null() {
                (*heir).node.parent = parent;
            }
            if parent.is_null() {
                self.root = heir;
            } else {
                let child = if (*parent).node.left == timer {
                    &raw mut (*parent).node.left
                } else {
                    &raw mut (*parent).node.right
                };
                *child = heir;
                mend(parent, Until::RankStays);
            }
            // Nothing points to its neighbours any more, for a collection of what crashed code has left.
            let node = &raw mut (*timer).node;
            ((*node).left, (*node).right, (*node).parent) =
                (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        }
    }
}

/// Whether `one` fires before `other`.
///
/// # Safety
/// Both are alive, and in a heap of the caller's.
unsafe fn is_before(one: *mut Timer, other: *mut Timer) -> bool {
    // SAFETY: by contract.
    let key = |timer: *mut Timer| unsafe { ((*timer).node.deadline, (*timer).node.number) };
    key(one) < key(other)
}

/// # Safety
/// Null, or alive and in a heap of the caller's.
unsafe fn rank(timer: *mut Timer) -> u8 {
    // SAFETY: by contract.
    if timer.is_null() { 0 } else { unsafe { (*timer).node.rank } }
}

/// Makes one heap of two, and returns its root, which has no parent.
///
/// # Safety
/// Each is null or the root of a heap of the caller's, and no timer is in both. What their parents are does not matter.
unsafe fn merge(mut one: *mut Timer, mut other: *mut Timer) -> *mut Timer {
    let (mut root, mut last) = (ptr::null_mut(), ptr::null_mut::<Timer>());
    // SAFETY: by contract, what is reached from them is in their heaps.
    unsafe {
        let rest = loop {
            if one.is_null() {
                break other;
            }
            if other.is_null() {
                break one;
            }
            if is_before(other, one) {
                core::mem::swap(&mut one, &mut other);
            }
            count_step();
            append(&mut root, last, one);
            last = one;
            one = (*one).node.right;
        };
        append(&mut root, last, rest);
        mend(last, Until::Root);
    }
    root
}

/// Puts `next` at the end of the way to the right whose last timer is `last`, or, if there is none, at its beginning.
///
/// # Safety
/// All are null, or alive and the caller's.
unsafe fn append(root: &mut *mut Timer, last: *mut Timer, next: *mut Timer) {
    // SAFETY: by contract.
    unsafe {
        if last.is_null() {
            *root = next;
        } else {
            (*last).node.right = next;
        }
        if !next.is_null() {
            (*next).node.parent = last;
        }
    }
}

/// How far up is mended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// All the way: every timer there has got another child.
    Root,
    /// To the first timer whose rank is what it was: those above see no difference.
    RankStays,
}

/// Sets ranks, and puts children on their sides, from `timer` upwards.
///
/// # Safety
/// Null, or alive and in a heap of the caller's.
unsafe fn mend(mut timer: *mut Timer, until: Until) {
    while !timer.is_null() {
        count_step();
        // SAFETY: by contract, as are its parent and its children.
        unsafe {
            let node = &raw mut (*timer).node;
            if rank((*node).left) < rank((*node).right) {
                ptr::swap(&raw mut (*node).left, &raw mut (*node).right);
            }
            let rank = rank((*node).right) + 1;
            if until == Until::RankStays && rank == (*node).rank {
                return;
            }
            (*node).rank = rank;
            timer = (*node).parent;
        }
    }
}

/// A link was followed: the tests count these.
#[inline(always)]
fn count_step() {
    #[cfg(test)]
    tests::count_step();
}

#[cfg(test)]
mod tests {
    use super::{Heap, rank};
    use crate::random::Random;
    use crate::time::timers::timer::Timer;
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::ptr::NonNull;

    std::thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count_step() {
        STEPS.set(STEPS.get() + 1);
    }

    /// Timers in a heap, and what must be in it. A timer's number is its place among the timers.
    struct Checked {
        heap: Heap,
        timers: Vec<Timer>,
        model: BTreeSet<(u64, u64)>,
        most_steps: u64,
    }

    impl Checked {
        fn new(count: usize) -> Self {
            let timers = (0..count).map(|_| Timer::new(false)).collect();
            Self { heap: Heap::new(), timers, model: BTreeSet::new(), most_steps: 0 }
        }

        fn pointer(&mut self, number: u64) -> NonNull<Timer> {
            // Not through a reference to the timer: others are reached from it.
            NonNull::new(self.timers.as_mut_ptr().wrapping_add(number as usize)).expect("not null")
        }

        fn insert(&mut self, number: u64, deadline: u64) {
            let timer = self.pointer(number);
            STEPS.set(0);
            // SAFETY: the vector is not changed any more; the model says that it is not in.
            unsafe { self.heap.insert(timer, deadline, number) };
            self.most_steps = self.most_steps.max(STEPS.get());
            assert!(self.model.insert((deadline, number)), "put in once");
        }

        fn remove(&mut self, (deadline, number): (u64, u64)) {
            let timer = self.pointer(number);
            assert!(self.model.remove(&(deadline, number)), "it is in the heap");
            STEPS.set(0);
            // SAFETY: the model says that it is in.
            unsafe { self.heap.remove(timer) };
            self.most_steps = self.most_steps.max(STEPS.get());
        }

        /// The earliest, of which the heap and the model agree.
        fn first(&self) -> Option<(u64, u64)> {
            // SAFETY: it is in the heap.
            let first = self
                .heap
                .first()
                .map(|first| unsafe { (first.as_ref().node.deadline, first.as_ref().node.number) });
            assert_eq!(first, self.model.first().copied(), "the earliest");
            first
        }

        /// Any that is in the heap.
        fn any(&self, random: &Random) -> Option<(u64, u64)> {
            let from = (random.bits(), 0);
            self.model.range(from..).next().or_else(|| self.model.iter().next_back()).copied()
        }

        /// The heap is one: links agree with each other, order and ranks are right, and nothing is lost.
        fn check(&self) {
            let (mut open, mut found) = (vec![self.heap.root], 0);
            while let Some(timer) = open.pop() {
                if timer.is_null() {
                    continue;
                }
                found += 1;
                // SAFETY: what is linked is one of the timers.
                unsafe {
                    let node = &(*timer).node;
                    assert!(rank(node.left) >= rank(node.right), "children on the wrong sides");
                    assert_eq!(node.rank, rank(node.right) + 1, "a rank");
                    for child in [node.left, node.right].into_iter().filter(|child| !child.is_null()) {
                        assert_eq!((*child).node.parent, timer, "a link to a parent");
                        let key = ((*child).node.deadline, (*child).node.number);
                        assert!(key > (node.deadline, node.number), "a child before its parent");
                    }
                    open.extend([node.left, node.right]);
                }
            }
            assert_eq!(found, self.model.len(), "timers in the heap");
        }
    }

    /// The most steps that an operation may take among so many: a merge goes along two ways and back, and a removal mends
    /// one more.
    fn bound(count: usize) -> u64 {
        5 * u64::from((count + 1).ilog2() + 1)
    }

    fn below(random: &Random, bound: u64) -> u64 {
        random.bits() % bound
    }

    /// A moment at any distance, near ones as often as far ones.
    fn any_distance(random: &Random) -> u64 {
        random.bits() >> below(random, 64)
    }

    #[test]
    fn it_agrees_with_a_sorted_set() {
        const COUNT: u64 = 300;
        for seed in 1..=60 {
            let random = Random::new(seed, 0);
            let mut timers = Checked::new(COUNT as usize);
            // Few different deadlines, many, and all that there are.
            let range = [3, 100, 1 << 20, u64::MAX][seed as usize % 4];
            for number in 0..COUNT {
                let deadline = match below(&random, 8) {
                    0 => u64::MAX,
                    1 => 0,
                    _ => any_distance(&random) % range,
                };
                timers.insert(number, deadline);
                if below(&random, 3) == 0
                    && let Some(timer) = timers.any(&random)
                {
                    timers.remove(timer);
                }
                if below(&random, 4) == 0
                    && let Some(timer) = timers.first()
                {
                    timers.remove(timer);
                }
                timers.first();
                timers.check();
            }
            while let Some(timer) = timers.first() {
                timers.remove(timer);
                timers.check();
            }
            assert!(timers.most_steps <= bound(COUNT as usize), "seed {seed}: {} steps", timers.most_steps);
        }
    }

    #[test]
    fn timers_of_one_deadline_leave_in_the_order_of_their_numbers() {
        const COUNT: u64 = 1000;
        let random = Random::new(3, 0);
        let mut timers = Checked::new(COUNT as usize);
        (0..COUNT).for_each(|number| timers.insert(number, 7 + number % 2));
        for _ in 0..COUNT / 4 {
            if let Some(timer) = timers.any(&random) {
                timers.remove(timer);
            }
        }
        let mut left = Vec::new();
        while let Some(timer) = timers.first() {
            timers.remove(timer);
            left.push(timer);
        }
        assert!(left.is_sorted(), "the order in which they left");
    }

    /// The longest operation on a million timers that come in this order: when they are put in, when every second is taken
    /// out from wherever it is, and when the rest leaves, in order.
    fn most_steps(deadline: impl Fn(u64) -> u64) -> u64 {
        const COUNT: usize = 1_000_000;
        let mut timers: Vec<_> = (0..COUNT).map(|_| Timer::new(false)).collect();
        let (first, mut heap, mut most) = (timers.as_mut_ptr(), Heap::new(), 0);
        let pointer = |number| NonNull::new(first.wrapping_add(number)).expect("not null");
        let mut count = |operation: &mut dyn FnMut()| {
            STEPS.set(0);
            operation();
            most = most.max(STEPS.get());
        };
        for number in 0..COUNT {
            let deadline = deadline(number as u64);
            // SAFETY: the vector is not changed any more; each is put in once.
            count(&mut || unsafe { heap.insert(pointer(number), deadline, number as u64) });
        }
        for number in (0..COUNT).step_by(2) {
            // SAFETY: put in above.
            count(&mut || unsafe { heap.remove(pointer(number)) });
        }
        let (mut left, mut previous) = (0, 0);
        while let Some(timer) = heap.first() {
            // SAFETY: it is in the heap.
            let deadline = unsafe { timer.as_ref() }.node.deadline;
            assert!(deadline >= previous, "{deadline} came after {previous}");
            (left, previous) = (left + 1, deadline);
            // SAFETY: as above.
            count(&mut || unsafe { heap.remove(timer) });
        }
        assert_eq!(left, COUNT / 2, "timers that were left");
        most
    }

    #[test]
    fn a_million_timers_make_no_operation_long() {
        let random = Random::new(7, 0);
        let bound = bound(1_000_000);
        let most = most_steps(|_| random.bits() >> 24);
        assert!(most <= bound, "in any order: {most} steps, at most {bound}");
        let most = most_steps(|number| number);
        assert!(most <= bound, "rising: {most} steps, at most {bound}");
        let most = most_steps(|number| u64::MAX - number);
        assert!(most <= bound, "falling: {most} steps, at most {bound}");
    }
}
