//! The inbox, the overflow list and the list that is only added to: several producers, several takers or readers.

use magpie::internals::arch::atomic::AtomicPtr;
use magpie::internals::queue::{AppendOnly, Chain, Inbox, Linked, Overflow};
use std::ptr::{self, NonNull};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, run, task};

pub const MODELS: &[Model] = &[
    Model {
        name: "inbox::two_producers",
        preemptions: Some(3),
        body: two_producers,
        mutants: &[
            step("inbox-push-unasked"),
            ordering("inbox-push-relaxed"),
            ordering("inbox-take-relaxed"),
        ],
    },
    Model {
        name: "inbox::owner_and_thief",
        preemptions: Some(3),
        body: owner_and_thief,
        mutants: &[step("inbox-take-in-two")],
    },
    Model {
        name: "overflow::push_and_steal",
        preemptions: None,
        body: push_and_steal,
        mutants: &[step("spin-take-in-two"), ordering("spin-free-relaxed")],
    },
    Model {
        name: "append_only::two_writers_and_a_reader",
        preemptions: Some(3),
        body: two_writers_and_a_reader,
        mutants: &[
            step("append-push-unasked"),
            ordering("append-push-relaxed"),
            ordering("append-iter-relaxed"),
        ],
    },
];

struct Item {
    link: AtomicPtr<Item>,
    number: Plain,
    taken: Plain,
}

// SAFETY: always the same field, which only the lists write.
unsafe impl Linked for Item {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.link
    }
}

/// A list and the items for it.
struct Setup<L> {
    list: L,
    items: Vec<Item>,
}

impl<L> Setup<L> {
    fn new(list: L, count: usize) -> Arc<Self> {
        let item = || Item {
            link: AtomicPtr::new(ptr::null_mut()),
            number: Plain::new(u64::MAX),
            taken: Plain::new(0),
        };
        Arc::new(Self { list, items: (0..count).map(|_| item()).collect() })
    }

    fn prepare(&self, number: usize) -> NonNull<Item> {
        self.items[number].number.set(number as u64);
        NonNull::from(&self.items[number])
    }

    fn take(&self, chain: Chain<Item>) -> Vec<u64> {
        let numbers = chain.map(|item| {
            // SAFETY: the lists hold pointers to `self.items` alone.
            let item = unsafe { item.as_ref() };
            assert_eq!(item.taken.get(), 0, "an item was taken twice");
            item.taken.set(1);
            item.number.get()
        });
        numbers.collect()
    }

    fn assert_all_taken(&self) {
        for (number, item) in self.items.iter().enumerate() {
            assert_eq!(item.taken.get(), 1, "item {number} was lost");
        }
    }
}

fn post(setup: &Setup<Inbox<Item>>, number: usize) -> bool {
    // SAFETY: each model enqueues an item once, and the items live as long as the list.
    unsafe { setup.list.push(setup.prepare(number)) }
}

/// Two producers, one of which sends twice; the owner drains meanwhile and at the end.
fn two_producers() {
    let setup = Setup::new(Inbox::new(), 3);
    let producer = |numbers: &'static [usize]| {
        task(|setup: &Setup<Inbox<Item>>| {
            (numbers.iter().filter(|&&number| post(setup, number)).count(), Vec::new())
        })
    };
    let owner = task(|setup: &Setup<Inbox<Item>>| (0, setup.take(setup.list.take_all())));
    let [first, second, (_, early)] = run(&setup, [producer(&[0, 1]), producer(&[2]), owner]);
    let late = setup.take(setup.list.take_all());
    let batches = [&early, &late].iter().filter(|batch| !batch.is_empty()).count();
    assert_eq!(first.0 + second.0, batches, "as many pushes find it empty as batches are taken");
    let order: Vec<_> = early.iter().chain(&late).filter(|&&number| number < 2).collect();
    assert_eq!(order, [&0, &1], "one producer's items arrived out of order");
    setup.assert_all_taken();
}

/// The owner and a thief drain while a producer sends.
fn owner_and_thief() {
    let setup = Setup::new(Inbox::new(), 2);
    post(&setup, 0);
    let drainer = || task(|setup: &Setup<Inbox<Item>>| _ = setup.take(setup.list.take_all()));
    let producer = task(|setup: &Setup<Inbox<Item>>| _ = post(setup, 1));
    run(&setup, [drainer(), drainer(), producer]);
    setup.take(setup.list.take_all());
    setup.assert_all_taken();
}

fn push_and_steal() {
    let setup = Setup::new(Overflow::new(), 3);
    let owner = task(|setup: &Setup<Overflow<Item>>| {
        for number in 0..3 {
            // SAFETY: as for `post`.
            unsafe { setup.list.push(setup.prepare(number)) };
        }
    });
    let thief = task(|setup: &Setup<Overflow<Item>>| _ = setup.take(setup.list.steal_half(2)));
    run(&setup, [owner, thief]);
    let mut rest = Vec::new();
    while !setup.list.is_empty() {
        rest.extend(setup.take(setup.list.steal_half(2)));
    }
    assert!(rest.is_sorted(), "the list is not first in, first out");
    setup.assert_all_taken();
}

/// Whoever reads sees each item that is there as it was added, an older one behind a newer one, too.
fn two_writers_and_a_reader() {
    let setup = Setup::new(AppendOnly::new(), 3);
    let add = |setup: &Setup<AppendOnly<Item>>, number: usize| {
        // SAFETY: each item is added once, and lives as long as the list.
        unsafe { setup.list.push(setup.prepare(number)) };
    };
    let seen = |setup: &Setup<AppendOnly<Item>>| -> Vec<u64> {
        // SAFETY: the list holds pointers to `setup.items` alone.
        setup.list.iter().map(|item| unsafe { item.as_ref() }.number.get()).collect()
    };
    let first = task(move |setup: &Setup<AppendOnly<Item>>| {
        add(setup, 0);
        add(setup, 1);
    });
    let second = task(move |setup: &Setup<AppendOnly<Item>>| add(setup, 2));
    let reader = task(move |setup: &Setup<AppendOnly<Item>>| {
        let numbers = seen(setup);
        assert!(numbers.len() <= 3 && !numbers.contains(&u64::MAX), "an item was seen before it was made");
    });
    run(&setup, [first, second, reader]);
    let mut numbers = seen(&setup);
    let own: Vec<_> = numbers.iter().copied().filter(|number| *number < 2).collect();
    assert_eq!(own, [1, 0], "newest first");
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1, 2], "an item was lost");
}
