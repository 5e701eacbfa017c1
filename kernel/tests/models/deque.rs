//! The deque: its owner against thieves, at the places where they meet.

use magpie::internals::arch::atomic::{AtomicPtr, AtomicU64, Ordering};
use magpie::internals::arch::{barrier, deque_ops};
use magpie::internals::queue::Deque;
use std::ptr::NonNull;

use crate::harness::{Model, Mutant, ordering, step};
use crate::tool::{Arc, Plain, mutant, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "deque::owner_one_thief",
        preemptions: None,
        body: owner_one_thief,
        mutants: &[ordering("pop-no-fence"), ordering("push-relaxed"), step("pop-last-unasked")],
    },
    Model {
        name: "deque::owner_two_thieves",
        preemptions: Some(3),
        body: owner_two_thieves,
        mutants: &[ordering("steal-no-fence"), step("pop-last-unasked")],
    },
    Model {
        name: "deque::last_item",
        preemptions: None,
        body: last_item,
        mutants: &[step("pop-last-unasked")],
    },
    Model {
        name: "deque::owner_oldest",
        preemptions: None,
        body: owner_oldest,
        mutants: &[ordering("steal-bottom-relaxed"), step("pop-last-unasked")],
    },
    Model {
        name: "deque::owner_rotates",
        preemptions: None,
        body: owner_rotates,
        mutants: &[ordering("rotate-puts-relaxed"), ordering("steal-bottom-relaxed"), step("rotate-unasked")],
    },
    Model {
        name: "deque::rotated_slot_reused",
        preemptions: None,
        body: rotated_slot_reused,
        mutants: &[step("steal-reads-late"), step("rotate-puts-first")],
    },
    Model {
        name: "deque::slot_reused",
        preemptions: None,
        body: slot_reused,
        mutants: &[
            step("push-ignores-full"),
            step("steal-reads-late"),
            // A read that is overtaken by a later write of somebody else: neither tool lets a load see a
            // store of the future. The litmus test `reuse` finds it.
            Mutant { name: "steal-swap-relaxed", rejected_by: &[] },
        ],
    },
    Model {
        name: "deque::lowered_bottom",
        preemptions: None,
        body: lowered_bottom,
        mutants: &[ordering("pop-lowers-relaxed"), ordering("steal-bottom-relaxed")],
    },
    Model {
        name: "deque::batch",
        preemptions: None,
        body: batch,
        mutants: &[step("batch-in-one-exchange"), ordering("steal-no-fence")],
    },
];

/// An item: its number is written before it is pushed, and read by whoever takes it.
struct Item {
    number: Plain,
    taken: Plain,
}

/// A deque and items for it, with indices about to pass 2^64.
struct Setup<const N: usize> {
    deque: Deque<Item, N>,
    items: Vec<Item>,
}

impl<const N: usize> Setup<N> {
    fn new(count: usize) -> Arc<Self> {
        let item = || Item { number: Plain::new(u64::MAX), taken: Plain::new(0) };
        Arc::new(Self { deque: Deque::starting_at(u64::MAX), items: (0..count).map(|_| item()).collect() })
    }

    /// Pushes item `number`, as the owner; whether there was room.
    fn push(&self, number: usize) -> bool {
        self.items[number].number.set(number as u64);
        // SAFETY: each model calls this from one thread; the items live as long as the deque.
        unsafe { self.deque.push_bottom(NonNull::from(&self.items[number])) }.is_ok()
    }

    fn pop_bottom(&self) -> Option<u64> {
        // SAFETY: as for `push`.
        unsafe { self.deque.pop_bottom() }.map(|item| self.take(item))
    }

    fn pop_oldest(&self) -> Option<u64> {
        // SAFETY: as for `push`.
        unsafe { self.deque.pop_oldest() }.map(|item| self.take(item))
    }

    /// Takes the oldest and puts item `number` behind the others, as the owner.
    fn rotate(&self, number: usize) -> u64 {
        self.items[number].number.set(number as u64);
        // SAFETY: as for `push`.
        self.take(unsafe { self.deque.rotate(NonNull::from(&self.items[number])) })
    }

    fn steal(&self) -> Option<u64> {
        self.deque.pop_top().taken().map(|item| self.take(item))
    }

    /// Marks the item as taken. Two takers race on the mark, and the second sees it.
    fn take(&self, item: NonNull<Item>) -> u64 {
        // SAFETY: the deque holds pointers to `self.items` alone.
        let item = unsafe { item.as_ref() };
        assert_eq!(item.taken.get(), 0, "an item was taken twice");
        item.taken.set(1);
        item.number.get()
    }

    /// After all threads have ended: takes what is left; each item pushed was then taken once.
    fn finish(&self, pushed: usize) {
        assert!(self.deque.check().is_ok(), "the deque is corrupted");
        while self.pop_bottom().is_some() {}
        for (number, item) in self.items.iter().enumerate().take(pushed) {
            assert_eq!(item.taken.get(), 1, "item {number} was lost");
        }
    }
}

/// The thief takes twice, the owner pushes and pops. Without the owner's fence both take one item.
fn owner_one_thief() {
    let setup = Setup::<4>::new(3);
    setup.push(0);
    let owner = task(|setup: &Setup<4>| {
        setup.push(1);
        setup.pop_bottom();
        setup.push(2);
        setup.pop_bottom();
    });
    let thief = task(|setup: &Setup<4>| {
        let (first, second) = (setup.steal(), setup.steal());
        assert!(first.is_none() || second.is_none() || first < second, "the thief did not take oldest first");
    });
    run(&setup, [owner, thief]);
    setup.finish(3);
}

fn owner_two_thieves() {
    let setup = Setup::<4>::new(2);
    setup.push(0);
    setup.push(1);
    let owner = task(|setup: &Setup<4>| {
        setup.pop_bottom();
        setup.pop_bottom();
    });
    let thief = || task(|setup: &Setup<4>| _ = setup.steal());
    run(&setup, [owner, thief(), thief()]);
    setup.finish(2);
}

/// One item, one thief, and the owner, which must not give up an item that nobody else took.
fn last_item() {
    let setup = Setup::<2>::new(1);
    setup.push(0);
    let owner = task(|setup: &Setup<2>| setup.pop_bottom());
    let thief = task(|setup: &Setup<2>| setup.steal());
    let taken = run(&setup, [owner, thief]);
    assert_eq!(taken.iter().flatten().count(), 1, "nobody took the item");
    assert_eq!(setup.deque.len(), 0);
    setup.finish(1);
}

/// The owner takes from the top as well, without the thief's fence.
fn owner_oldest() {
    let setup = Setup::<2>::new(3);
    setup.push(0);
    setup.push(1);
    let owner = task(|setup: &Setup<2>| {
        setup.pop_oldest();
        let pushed = if setup.push(2) { 3 } else { 2 };
        setup.pop_oldest();
        pushed
    });
    let thief = task(|setup: &Setup<2>| {
        setup.steal();
        setup.steal();
        0
    });
    let [pushed, _] = run(&setup, [owner, thief]);
    setup.finish(pushed);
}

/// The owner takes the oldest and puts an item behind the others in one, while a thief takes both: each is taken once, and the owner has that very
/// item only if the thief has taken the other.
fn owner_rotates() {
    let setup = Setup::<2>::new(2);
    setup.push(0);
    let owner = task(|setup: &Setup<2>| setup.rotate(1));
    let thief = task(|setup: &Setup<2>| (0..2).map(|_| u64::from(setup.steal().is_some())).sum());
    let [owned, stolen] = run(&setup, [owner, thief]);
    assert!(owned == 0 || stolen == 1, "the owner passed over an item that nobody took");
    setup.finish(2);
}

/// A full ring: the slot in which the owner puts an item is that of the oldest, which it takes itself, or whose thief has read it.
fn rotated_slot_reused() {
    let setup = Setup::<2>::new(3);
    setup.push(0);
    setup.push(1);
    let owner = task(|setup: &Setup<2>| setup.rotate(2));
    let thief = task(|setup: &Setup<2>| setup.steal().unwrap_or(u64::MAX));
    let [owned, stolen] = run(&setup, [owner, thief]);
    assert!(owned == 0 && stolen != 0 || owned == 1 && stolen == 0, "the oldest was not taken first");
    setup.finish(3);
}

/// A ring of one slot: the owner writes it anew as soon as the thief has it.
fn slot_reused() {
    let setup = Setup::<1>::new(2);
    setup.push(0);
    let owner = task(|setup: &Setup<1>| u64::from(setup.push(1)));
    let thief = task(|setup: &Setup<1>| setup.steal().map_or(0, |_| 1));
    let [pushed, stolen] = run(&setup, [owner, thief]);
    assert!(pushed <= stolen, "there was room, and nobody had taken the item");
    setup.finish(1 + pushed as usize);
}

/// The thief may read the `bottom` that `pop_bottom` stored, and must see the items below it.
fn lowered_bottom() {
    let setup = Setup::<4>::new(2);
    let owner = task(|setup: &Setup<4>| {
        setup.push(0);
        setup.push(1);
        setup.pop_bottom();
    });
    let thief = task(|setup: &Setup<4>| _ = setup.steal());
    run(&setup, [owner, thief]);
    setup.finish(2);
}

/// Half of three items, while the owner takes two from the other end.
fn batch() {
    if mutant("batch-in-one-exchange") {
        return batch_in_one_exchange();
    }
    let setup = Setup::<4>::new(3);
    for number in 0..3 {
        setup.push(number);
    }
    let owner = task(|setup: &Setup<4>| {
        setup.pop_bottom();
        setup.pop_bottom();
        0
    });
    let thief = task(|setup: &Setup<4>| setup.deque.steal_half(2, |item| _ = setup.take(item)).taken);
    let [_, taken] = run(&setup, [owner, thief]);
    assert!(taken <= 2);
    setup.finish(3);
}

/// What `steal_half` does not do: two items by one exchange of `top`. Shows why.
fn batch_in_one_exchange() {
    struct Raw {
        top: AtomicU64,
        bottom: AtomicU64,
        slots: [AtomicPtr<Item>; 4],
        items: [Item; 3],
    }
    fn take(item: NonNull<Item>) {
        // SAFETY: the items live until every thread has ended.
        let item = unsafe { item.as_ref() };
        assert_eq!(item.taken.get(), 0, "an item was taken twice");
        item.taken.set(1);
    }
    let raw = Arc::new(Raw {
        top: AtomicU64::new(0),
        bottom: AtomicU64::new(0),
        slots: std::array::from_fn(|_| AtomicPtr::new(std::ptr::null_mut())),
        items: std::array::from_fn(|_| Item { number: Plain::new(0), taken: Plain::new(0) }),
    });
    for item in &raw.items {
        // SAFETY: no other thread has started.
        let pushed =
            unsafe { deque_ops::push_bottom(&raw.top, &raw.bottom, &raw.slots, NonNull::from(item)) };
        assert!(pushed.is_ok());
    }
    let owner = task(|raw: &Raw| {
        for _ in 0..2 {
            // SAFETY: this thread is the owner.
            if let Some(item) = unsafe { deque_ops::pop_bottom(&raw.top, &raw.bottom, &raw.slots) } {
                take(item);
            }
        }
    });
    let thief = task(|raw: &Raw| {
        let top = raw.top.load(Ordering::SeqCst);
        barrier::full();
        if raw.bottom.load(Ordering::SeqCst) < top + 2 {
            return;
        }
        let pair = [0, 1].map(|offset| raw.slots[(top + offset) as usize % 4].load(Ordering::SeqCst));
        if raw.top.compare_exchange(top, top + 2, Ordering::SeqCst, Ordering::SeqCst).is_ok() {
            pair.into_iter().filter_map(NonNull::new).for_each(take);
        }
    });
    run(&raw, [owner, thief]);
}
