//! The inbox and the overflow list: order, and exactly one taker for each item.

use alloc::vec::Vec;
use core::ptr::NonNull;

use super::items::{Item, Items};
use super::{Check, Cores, Done, Random};
use crate::arch::atomic::{AtomicBool, AtomicUsize, Ordering};
use crate::queue::{Chain, Inbox, Overflow, OwnList};

pub static ALL: &[Check] = &[
    Check { name: "chain::keeps_order", min_cores: 1, body: chain_keeps_order },
    Check { name: "inbox::oldest_first", min_cores: 1, body: inbox_oldest_first },
    Check { name: "inbox::many_producers_many_drainers", min_cores: 2, body: inbox_stress },
    Check { name: "own_list::oldest_first", min_cores: 1, body: own_list_oldest_first },
    Check { name: "overflow::oldest_first", min_cores: 1, body: overflow_oldest_first },
    Check { name: "overflow::stress", min_cores: 2, body: overflow_stress },
];

fn post(inbox: &Inbox<Item>, item: NonNull<Item>) -> bool {
    // SAFETY: in every check an item is enqueued once, and the items outlive the list.
    unsafe { inbox.push(item) }
}

fn spill(overflow: &Overflow<Item>, item: NonNull<Item>) {
    // SAFETY: as for `post`.
    unsafe { overflow.push(item) }
}

fn numbers(items: &Items, chain: Chain<Item>) -> Vec<usize> {
    let expected = chain.len();
    let numbers: Vec<_> = chain.map(|item| items.take(item)).collect();
    assert_eq!(numbers.len(), expected, "the chain miscounts its items");
    numbers
}

fn chain_keeps_order(_: &Cores) {
    let items = Items::new(7);
    let mut first = Chain::new();
    let mut second = Chain::new();
    for number in 0..7 {
        let chain = if number < 3 { &mut first } else { &mut second };
        // SAFETY: as for `post`.
        unsafe { chain.push_back(items.prepare(number)) };
    }
    assert_eq!(first.pop_front().map(|item| items.take(item)), Some(0));
    first.append(second);
    first.append(Chain::new());
    let mut all = Chain::new();
    all.append(first);
    assert_eq!(numbers(&items, all), [1, 2, 3, 4, 5, 6]);
}

fn own_list_oldest_first(_: &Cores) {
    let (items, list) = (Items::new(20), OwnList::new());
    let mut next = 0;
    for number in 0..20 {
        // SAFETY: as for `post`; nobody else has the list.
        unsafe { list.push(items.prepare(number)) };
        if number % 3 == 2 {
            // SAFETY: as above.
            assert_eq!(unsafe { list.pop() }.map(|item| items.take(item)), Some(next));
            next += 1;
        }
        assert_eq!(list.len(), number + 1 - next);
    }
    while !list.is_empty() {
        // SAFETY: as above.
        assert_eq!(unsafe { list.pop() }.map(|item| items.take(item)), Some(next));
        next += 1;
    }
    // SAFETY: as above.
    assert!(next == 20 && unsafe { list.pop() }.is_none());
}

fn inbox_oldest_first(_: &Cores) {
    let (items, inbox) = (Items::new(30), Inbox::new());
    for group in 0..6 {
        assert!(inbox.is_empty());
        assert!(inbox.take_all().is_empty());
        for number in group * 5..group * 5 + 5 {
            assert_eq!(post(&inbox, items.prepare(number)), number % 5 == 0);
        }
        assert_eq!(numbers(&items, inbox.take_all()), (group * 5..group * 5 + 5).collect::<Vec<_>>());
    }
    items.assert_all_taken();
}

/// Every core but the last produces; core 0 and the last drain. The items of one producer arrive in order
/// within a batch, and as many pushes say "it was empty" as batches are taken.
fn inbox_stress(cores: &Cores) {
    let producers = cores.count - 1;
    let (items, inbox) = (Items::new(producers * cores.work), Inbox::new());
    let (found_empty, batches) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let finished = AtomicUsize::new(0);
    let drain = || {
        let numbers = numbers(&items, inbox.take_all());
        if numbers.is_empty() {
            return false;
        }
        batches.fetch_add(1, Ordering::Relaxed);
        for producer in 0..producers {
            let own = numbers.iter().filter(|&&number| number % producers == producer);
            assert!(own.is_sorted(), "the items of producer {producer} arrived out of order");
        }
        true
    };
    (cores.run)(&|core| {
        let random = Random::new(cores.seed, core);
        if core == producers {
            let mut waiting = cores.waiting();
            while finished.load(Ordering::Relaxed) < producers {
                if drain() { waiting.is_over() } else { waiting.again() }
            }
            return;
        }
        let _finished = Finished(&finished);
        for number in 0..cores.work {
            if post(&inbox, items.prepare(number * producers + core)) {
                found_empty.fetch_add(1, Ordering::Relaxed);
            }
            if core == 0 && random.below(16) == 0 {
                drain();
            }
        }
    });
    drain();
    items.assert_all_taken();
    assert_eq!(found_empty.load(Ordering::Relaxed), batches.load(Ordering::Relaxed));
}

fn overflow_oldest_first(_: &Cores) {
    let (items, overflow) = (Items::new(9), Overflow::new());
    assert!(overflow.pop().is_none());
    for number in 0..9 {
        spill(&overflow, items.prepare(number));
        assert_eq!(overflow.len(), number + 1);
    }
    assert_eq!(overflow.pop().map(|item| items.take(item)), Some(0));
    assert_eq!(numbers(&items, overflow.steal_half(2)), [1, 2]);
    assert_eq!(numbers(&items, overflow.steal_half(100)), [3, 4, 5]);
    for number in 6..9 {
        assert_eq!(overflow.pop().map(|item| items.take(item)), Some(number));
    }
    assert!(overflow.is_empty());
    assert!(overflow.steal_half(100).is_empty());
    items.assert_all_taken();
}

fn overflow_stress(cores: &Cores) {
    let (items, overflow) = (Items::new(cores.work), Overflow::new());
    let done = AtomicBool::new(false);
    (cores.run)(&|core| {
        let random = Random::new(cores.seed, core);
        let take = || {
            if random.below(2) == 0 {
                overflow.pop().map(|item| items.take(item)).is_some()
            } else {
                !numbers(&items, overflow.steal_half(4)).is_empty()
            }
        };
        if core > 0 {
            let mut waiting = cores.waiting();
            while !done.load(Ordering::Relaxed) {
                if take() { waiting.is_over() } else { waiting.again() }
            }
            return;
        }
        let _done = Done(&done);
        for number in 0..items.len() {
            spill(&overflow, items.prepare(number));
            if number % 3 == 0 {
                take();
            }
        }
    });
    while let Some(item) = overflow.pop() {
        items.take(item);
    }
    items.assert_all_taken();
}

/// Counts a producer as finished, also when it panics.
struct Finished<'a>(&'a AtomicUsize);

impl Drop for Finished<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}
