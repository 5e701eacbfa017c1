//! The double swap: thieves in a circle and in a chain, and what is handed over with a pointer.

use magpie::internals::arch::atomic::{AtomicPtr, Ordering};
use magpie::internals::arch::{SwapOutcome, swap};

use crate::harness::{Model, ordering, step};
use crate::tool::{Arc, Plain, run, task};

pub const MODELS: &[Model] = &[
    Model {
        // Robbing each other unasked puts the right pointers into place, as long as stores are seen in order.
        name: "swap::cycle_of_two",
        preemptions: None,
        body: || circle_or_chain([(0, 1), (1, 0)], 2),
        mutants: &[step("swap-no-restore"), step("swap-keeps-thief"), ordering("swap-victim-unasked")],
    },
    Model {
        name: "swap::cycle_of_three",
        preemptions: Some(3),
        body: || circle_or_chain([(0, 1), (1, 2), (2, 0)], 3),
        mutants: &[step("swap-no-restore"), step("swap-keeps-thief"), step("swap-victim-unasked")],
    },
    Model {
        name: "swap::chain_of_two",
        preemptions: None,
        body: || circle_or_chain([(0, 1), (1, 2)], 3),
        mutants: &[step("swap-keeps-thief"), step("swap-victim-unasked")],
    },
    Model {
        name: "swap::chain_of_three",
        preemptions: Some(3),
        body: || circle_or_chain([(0, 1), (1, 2), (2, 3)], 4),
        mutants: &[step("swap-keeps-thief")],
    },
    Model {
        name: "swap::one_victim",
        preemptions: Some(3),
        body: || circle_or_chain([(0, 3), (1, 3), (2, 3)], 4),
        mutants: &[step("swap-victim-unasked")],
    },
    Model {
        name: "swap::hands_over",
        preemptions: None,
        body: hands_over,
        mutants: &[ordering("swap-victim-relaxed")],
    },
    Model {
        name: "swap::hands_on",
        preemptions: Some(3),
        body: hands_on,
        mutants: &[ordering("swap-thief-relaxed"), ordering("swap-victim-relaxed")],
    },
    Model {
        name: "swap::never_in_two_slots",
        preemptions: None,
        body: never_in_two_slots,
        mutants: &[ordering("swap-final-relaxed"), step("swap-keeps-thief")],
    },
];

/// A mailbox, with something that its holder writes.
struct Mailbox {
    state: Plain,
}

/// Slot `i` holds mailbox `i` at first.
struct Table {
    mailboxes: Vec<Mailbox>,
    slots: Vec<AtomicPtr<Mailbox>>,
}

impl Table {
    fn new(count: usize) -> Arc<Self> {
        let mailboxes: Vec<_> = (0..count).map(|_| Mailbox { state: Plain::new(0) }).collect();
        let slots = mailboxes.iter().map(|mailbox| AtomicPtr::new(std::ptr::from_ref(mailbox).cast_mut()));
        let slots = slots.collect();
        Arc::new(Self { mailboxes, slots })
    }

    fn swap(&self, thief_slot: usize, victim_slot: usize) -> SwapOutcome<Mailbox> {
        swap::double_swap(&self.slots[thief_slot], &self.slots[victim_slot])
    }

    /// The number of the mailbox in a slot; `None` while its owner swaps.
    fn at(&self, slot: usize) -> Option<usize> {
        // Acquire: pairs with the releases in the swap.
        let pointer = self.slots[slot].load(Ordering::Acquire);
        self.mailboxes.iter().position(|mailbox| std::ptr::eq(mailbox, pointer))
    }

    fn assert_each_once(&self) {
        let mut held: Vec<_> = (0..self.slots.len()).map(|slot| self.at(slot)).collect();
        held.sort_unstable();
        assert!(held.iter().copied().eq((0..self.slots.len()).map(Some)), "the table holds {held:?}");
    }
}

/// Each pair is a thief: its own slot, and the slot it robs.
fn circle_or_chain<const N: usize>(thieves: [(usize, usize); N], slots: usize) {
    let table = Table::new(slots);
    let tasks = thieves.map(|(thief_slot, victim_slot)| {
        task(move |table: &Table| {
            let swapped = matches!(table.swap(thief_slot, victim_slot), SwapOutcome::Swapped { .. });
            assert!(table.at(thief_slot).is_some(), "an owner found null in its own slot");
            swapped
        })
    });
    let swapped = run(&table, tasks).contains(&true);
    table.assert_each_once();
    assert!(swapped || (0..slots).all(|slot| table.at(slot) == Some(slot)), "failures changed the table");
}

/// The thief writes to the mailbox it gives away; the victim reads it there.
fn hands_over() {
    let table = Table::new(2);
    let thief = task(|table: &Table| {
        table.mailboxes[0].state.set(7);
        table.swap(0, 1);
    });
    let victim = task(|table: &Table| {
        if table.at(1) == Some(0) {
            assert_eq!(table.mailboxes[0].state.get(), 7, "the mailbox came without its state");
        }
    });
    run(&table, [thief, victim]);
    table.assert_each_once();
}

/// The first thief puts mailbox 0 into slot 1; its owner gives it on to slot 2; what the first wrote arrives.
fn hands_on() {
    let table = Table::new(3);
    let first = task(|table: &Table| {
        table.mailboxes[0].state.set(7);
        table.swap(0, 1);
    });
    let second = task(|table: &Table| _ = table.swap(1, 2));
    let victim = task(|table: &Table| {
        if table.at(2) == Some(0) {
            assert_eq!(table.mailboxes[0].state.get(), 7, "the mailbox came without its state");
        }
    });
    run(&table, [first, second, victim]);
    table.assert_each_once();
}

/// Somebody who sees the thief's gain in its slot does not see it in the victim's any more, and who sees
/// what it gave in the victim's slot does not see it in the thief's.
fn never_in_two_slots() {
    let table = Table::new(2);
    let thief = task(|table: &Table| _ = table.swap(0, 1));
    let observer = task(|table: &Table| {
        if table.at(0) == Some(1) {
            assert_ne!(table.at(1), Some(1), "the gained mailbox is in two slots");
        }
        if table.at(1) == Some(0) {
            assert_ne!(table.at(0), Some(0), "the given mailbox is in two slots");
        }
    });
    run(&table, [thief, observer]);
    table.assert_each_once();
}
