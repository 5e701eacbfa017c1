//! A leftist heap: the item with the earliest deadline is at its root, and every change costs O(log n) at worst.
//!
//! Every item comes before both its children. Its *rank* is the number of items on the way from it to a place where a
//! right child is missing, going right: at most log2(n + 1), because of two children the one with the lower rank is the
//! right one. All work is a walk along such ways:
//!
//! 1. *Merge*: the two ways to the right are merged into one, in order. What hangs to the left of them stays where it is.
//! 2. *Mend*: back up that one way children change sides where they must, and ranks are set.
//!
//! To insert is to merge with a heap of one. To remove, wherever the item is, is to merge its children into its place, and to
//! mend upwards until a rank is what it was. If ranks fell, they differ by one from step to step on the way up; if they rose,
//! that way is one to the right. Both are as long as a rank at most.
//!
//! Items of one deadline are in the order of the numbers that they were put in with.
//!
//! After Crane, "Linear lists and priority queues as balanced binary trees" (1972), with links to parents. It takes no memory,
//! calls nothing and knows no clock. Timers wait in such heaps (`time/timers/queue.rs`), and processes with a deadline
//! (`sched/cores/deadlines.rs`), each behind a lock of their own.

use core::ptr::{self, NonNull};

/// What has a place in a heap.
///
/// # Safety
/// The node is the same, and nothing but the heaps touches it, as long as the item lives.
pub unsafe trait HasNode: Sized {
    /// Its place.
    ///
    /// # Safety
    /// The item is alive.
    unsafe fn node(this: *mut Self) -> *mut Node<Self>;
}

/// An item's place in a heap.
pub struct Node<T> {
    left: *mut T,
    right: *mut T,
    parent: *mut T,
    deadline: u64,
    /// Of two with one deadline the lower comes first.
    number: u64,
    rank: u8,
}

impl<T> Node<T> {
    /// In no heap.
    pub const NONE: Self = Self::new(0, 0);

    const fn new(deadline: u64, number: u64) -> Self {
        let nobody = ptr::null_mut();
        Self { left: nobody, right: nobody, parent: nobody, deadline, number, rank: 1 }
    }

    /// When it is due, in clock ticks.
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// What decides between two items: the lower comes first.
    pub fn key(&self) -> (u64, u64) {
        (self.deadline, self.number)
    }
}

/// Items by deadline.
pub struct Heap<T: HasNode> {
    root: *mut T,
}

// SAFETY: whoever puts an item in promises that it may be used from whatever core has the heap.
unsafe impl<T: HasNode> Send for Heap<T> {}

impl<T: HasNode> Heap<T> {
    /// An empty one.
    pub const fn new() -> Self {
        Self { root: ptr::null_mut() }
    }

    /// The earliest.
    pub fn first(&self) -> Option<NonNull<T>> {
        NonNull::new(self.root)
    }

    /// Puts an item in.
    ///
    /// # Safety
    /// The item is in no heap, stays where it is until it was taken out, and may be handed to any core.
    pub unsafe fn insert(&mut self, item: NonNull<T>, deadline: u64, number: u64) {
        let item = item.as_ptr();
        // SAFETY: by contract; what is in the heap is alive.
        unsafe {
            (*T::node(item)) = Node::new(deadline, number);
            self.root = merge(self.root, item);
        }
    }

    /// Takes an item out.
    ///
    /// # Safety
    /// It is in this heap.
    pub unsafe fn remove(&mut self, item: NonNull<T>) {
        let item = item.as_ptr();
        // SAFETY: by contract, so its parent and its children are in this heap, too.
        unsafe {
            let Node { left, right, parent, .. } = *T::node(item);
            let heir = merge(left, right);
            if !heir.is_null() {
                (*T::node(heir)).parent = parent;
            }
            if parent.is_null() {
                self.root = heir;
            } else {
                let child = if (*T::node(parent)).left == item {
                    &raw mut (*T::node(parent)).left
                } else {
                    &raw mut (*T::node(parent)).right
                };
                *child = heir;
                mend(parent, Until::RankStays);
            }
            // Nothing points to its neighbours any more, for a collection of what crashed code has left.
            let node = &raw mut (*T::node(item));
            ((*node).left, (*node).right, (*node).parent) =
                (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        }
    }
}

impl<T: HasNode> Default for Heap<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Whether `one` comes before `other`.
///
/// # Safety
/// Both are alive, and in a heap of the caller's.
unsafe fn is_before<T: HasNode>(one: *mut T, other: *mut T) -> bool {
    // SAFETY: by contract.
    let key = |item: *mut T| unsafe { (*T::node(item)).key() };
    key(one) < key(other)
}

/// # Safety
/// Null, or alive and in a heap of the caller's.
unsafe fn rank<T: HasNode>(item: *mut T) -> u8 {
    // SAFETY: by contract.
    if item.is_null() { 0 } else { unsafe { (*T::node(item)).rank } }
}

/// Makes one heap of two, and returns its root, which has no parent.
///
/// # Safety
/// Each is null or the root of a heap of the caller's, and no item is in both. What their parents are does not matter.
unsafe fn merge<T: HasNode>(mut one: *mut T, mut other: *mut T) -> *mut T {
    let (mut root, mut last) = (ptr::null_mut(), ptr::null_mut::<T>());
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
            one = (*T::node(one)).right;
        };
        append(&mut root, last, rest);
        mend(last, Until::Root);
    }
    root
}

/// Puts `next` at the end of the way to the right whose last item is `last`, or, if there is none, at its beginning.
///
/// # Safety
/// All are null, or alive and the caller's.
unsafe fn append<T: HasNode>(root: &mut *mut T, last: *mut T, next: *mut T) {
    // SAFETY: by contract.
    unsafe {
        if last.is_null() {
            *root = next;
        } else {
            (*T::node(last)).right = next;
        }
        if !next.is_null() {
            (*T::node(next)).parent = last;
        }
    }
}

/// How far up is mended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Until {
    /// All the way: every item there has got another child.
    Root,
    /// To the first item whose rank is what it was: those above see no difference.
    RankStays,
}

/// Sets ranks, and puts children on their sides, from `item` upwards.
///
/// # Safety
/// Null, or alive and in a heap of the caller's.
unsafe fn mend<T: HasNode>(mut item: *mut T, until: Until) {
    while !item.is_null() {
        count_step();
        // SAFETY: by contract, as are its parent and its children.
        unsafe {
            let node = &raw mut (*T::node(item));
            if rank((*node).left) < rank((*node).right) {
                ptr::swap(&raw mut (*node).left, &raw mut (*node).right);
            }
            let rank = rank((*node).right) + 1;
            if until == Until::RankStays && rank == (*node).rank {
                return;
            }
            (*node).rank = rank;
            item = (*node).parent;
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
    use super::{HasNode, Heap, Node, rank};
    use crate::random::Random;
    use std::cell::Cell;
    use std::collections::BTreeSet;
    use std::ptr::NonNull;

    std::thread_local! {
        static STEPS: Cell<u64> = const { Cell::new(0) };
    }

    pub(super) fn count_step() {
        STEPS.set(STEPS.get() + 1);
    }

    struct Item {
        node: Node<Self>,
    }

    impl Item {
        const NEW: Self = Self { node: Node::NONE };
    }

    // SAFETY: the node is a field that nothing else here writes.
    unsafe impl HasNode for Item {
        unsafe fn node(this: *mut Self) -> *mut Node<Self> {
            // SAFETY: the item is alive.
            unsafe { &raw mut (*this).node }
        }
    }

    /// Items in a heap, and what must be in it. An item's number is its place among the items.
    struct Checked {
        heap: Heap<Item>,
        items: Vec<Item>,
        model: BTreeSet<(u64, u64)>,
        most_steps: u64,
    }

    impl Checked {
        fn new(count: usize) -> Self {
            let items = (0..count).map(|_| Item::NEW).collect();
            Self { heap: Heap::new(), items, model: BTreeSet::new(), most_steps: 0 }
        }

        fn pointer(&mut self, number: u64) -> NonNull<Item> {
            // Not through a reference to the item: others are reached from it.
            NonNull::new(self.items.as_mut_ptr().wrapping_add(number as usize)).expect("not null")
        }

        fn insert(&mut self, number: u64, deadline: u64) {
            let item = self.pointer(number);
            STEPS.set(0);
            // SAFETY: the vector is not changed any more; the model says that it is not in.
            unsafe { self.heap.insert(item, deadline, number) };
            self.most_steps = self.most_steps.max(STEPS.get());
            assert!(self.model.insert((deadline, number)), "put in once");
        }

        fn remove(&mut self, (deadline, number): (u64, u64)) {
            let item = self.pointer(number);
            assert!(self.model.remove(&(deadline, number)), "it is in the heap");
            STEPS.set(0);
            // SAFETY: the model says that it is in.
            unsafe { self.heap.remove(item) };
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
            while let Some(item) = open.pop() {
                if item.is_null() {
                    continue;
                }
                found += 1;
                // SAFETY: what is linked is one of the items.
                unsafe {
                    let node = &(*item).node;
                    assert!(rank(node.left) >= rank(node.right), "children on the wrong sides");
                    assert_eq!(node.rank, rank(node.right) + 1, "a rank");
                    for child in [node.left, node.right].into_iter().filter(|child| !child.is_null()) {
                        assert_eq!((*child).node.parent, item, "a link to a parent");
                        let key = ((*child).node.deadline, (*child).node.number);
                        assert!(key > (node.deadline, node.number), "a child before its parent");
                    }
                    open.extend([node.left, node.right]);
                }
            }
            assert_eq!(found, self.model.len(), "items in the heap");
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
            let mut items = Checked::new(COUNT as usize);
            // Few different deadlines, many, and all that there are.
            let range = [3, 100, 1 << 20, u64::MAX][seed as usize % 4];
            for number in 0..COUNT {
                let deadline = match below(&random, 8) {
                    0 => u64::MAX,
                    1 => 0,
                    _ => any_distance(&random) % range,
                };
                items.insert(number, deadline);
                if below(&random, 3) == 0
                    && let Some(item) = items.any(&random)
                {
                    items.remove(item);
                }
                if below(&random, 4) == 0
                    && let Some(item) = items.first()
                {
                    items.remove(item);
                }
                items.first();
                items.check();
            }
            while let Some(item) = items.first() {
                items.remove(item);
                items.check();
            }
            assert!(items.most_steps <= bound(COUNT as usize), "seed {seed}: {} steps", items.most_steps);
        }
    }

    #[test]
    fn items_of_one_deadline_leave_in_the_order_of_their_numbers() {
        const COUNT: u64 = 1000;
        let random = Random::new(3, 0);
        let mut items = Checked::new(COUNT as usize);
        (0..COUNT).for_each(|number| items.insert(number, 7 + number % 2));
        for _ in 0..COUNT / 4 {
            if let Some(item) = items.any(&random) {
                items.remove(item);
            }
        }
        let mut left = Vec::new();
        while let Some(item) = items.first() {
            items.remove(item);
            left.push(item);
        }
        assert!(left.is_sorted(), "the order in which they left");
    }

    /// The longest operation on a million items that come in this order: when they are put in, when every second is taken
    /// out from wherever it is, and when the rest leaves, in order.
    fn most_steps(deadline: impl Fn(u64) -> u64) -> u64 {
        const COUNT: usize = 1_000_000;
        let mut items: Vec<_> = (0..COUNT).map(|_| Item::NEW).collect();
        let (first, mut heap, mut most) = (items.as_mut_ptr(), Heap::new(), 0);
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
        while let Some(item) = heap.first() {
            // SAFETY: it is in the heap.
            let deadline = unsafe { item.as_ref() }.node.deadline;
            assert!(deadline >= previous, "{deadline} came after {previous}");
            (left, previous) = (left + 1, deadline);
            // SAFETY: as above.
            count(&mut || unsafe { heap.remove(item) });
        }
        assert_eq!(left, COUNT / 2, "items that were left");
        most
    }

    #[test]
    fn a_million_items_make_no_operation_long() {
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
