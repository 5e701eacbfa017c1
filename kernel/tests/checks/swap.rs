//! The double swap: the table always holds each mailbox once, whoever swaps with whom.

use alloc::vec::Vec;
use core::ptr;

use super::{Check, Cores, Random};
use crate::arch::atomic::{AtomicPtr, AtomicUsize, Ordering};
use crate::arch::{SwapOutcome, swap};

pub static ALL: &[Check] = &[
    Check { name: "swap::outcomes", min_cores: 1, body: outcomes },
    Check { name: "swap::keeps_the_table", min_cores: 2, body: keeps_the_table },
];

/// Stands for a mailbox: what matters is which one it is, so it must not be of size zero.
struct Mailbox(#[expect(dead_code, reason = "gives each its own address")] usize);

fn mailboxes(count: usize) -> Vec<Mailbox> {
    (0..count).map(Mailbox).collect()
}

fn slot(mailbox: &Mailbox) -> AtomicPtr<Mailbox> {
    AtomicPtr::new(ptr::from_ref(mailbox).cast_mut())
}

fn outcomes(_: &Cores) {
    let pair = mailboxes(2);
    let (thief_slot, victim_slot) = (slot(&pair[0]), slot(&pair[1]));
    // Again on a loss: a forced failure may be due.
    let (gained, given) = loop {
        match swap::double_swap(&thief_slot, &victim_slot) {
            SwapOutcome::Swapped { gained, given } => break (gained, given),
            SwapOutcome::LostThiefSlot | SwapOutcome::LostVictimSlot => {
                assert!(
                    ptr::eq(thief_slot.load(Ordering::Relaxed), &raw const pair[0]),
                    "a failed swap lost the thief's"
                );
                assert!(
                    ptr::eq(victim_slot.load(Ordering::Relaxed), &raw const pair[1]),
                    "a failed swap lost the victim's"
                );
            }
            SwapOutcome::VictimSlotNull => panic!("the victim's slot was not null"),
        }
    };
    assert!(ptr::eq(gained.as_ptr(), &raw const pair[1]) && ptr::eq(given.as_ptr(), &raw const pair[0]));
    assert_eq!(thief_slot.load(Ordering::Relaxed), gained.as_ptr());
    assert_eq!(victim_slot.load(Ordering::Relaxed), given.as_ptr());

    victim_slot.store(ptr::null_mut(), Ordering::Relaxed);
    assert!(matches!(swap::double_swap(&thief_slot, &victim_slot), SwapOutcome::VictimSlotNull));
    assert_eq!(thief_slot.load(Ordering::Relaxed), gained.as_ptr());
}

/// Every core owns a range of slots and swaps one of them with another core's slot, over and over.
fn keeps_the_table(cores: &Cores) {
    const RANGE: usize = 2;
    let mailboxes = mailboxes(cores.count * RANGE);
    let table: Vec<_> = mailboxes.iter().map(slot).collect();
    let swapped = AtomicUsize::new(0);
    (cores.run)(&|core| {
        let random = Random::new(cores.seed, core);
        for _ in 0..cores.work {
            let thief_slot = &table[core * RANGE + random.below(RANGE)];
            let victim = (core + 1 + random.below(cores.count - 1)) % cores.count;
            let victim_slot = &table[victim * RANGE + random.below(RANGE)];
            if let SwapOutcome::Swapped { gained, given } = swap::double_swap(thief_slot, victim_slot) {
                assert_ne!(gained, given, "one mailbox was in two slots");
                swapped.fetch_add(1, Ordering::Relaxed);
            }
            for own in &table[core * RANGE..][..RANGE] {
                assert!(!own.load(Ordering::Relaxed).is_null(), "an owner found null in its own range");
            }
        }
    });
    // The run's end orders everything before it.
    for (number, mailbox) in mailboxes.iter().enumerate() {
        let holders = table.iter().filter(|slot| ptr::eq(slot.load(Ordering::Relaxed), mailbox)).count();
        assert_eq!(holders, 1, "mailbox {number} is in {holders} slots");
    }
    // Under miri most weak exchanges fail, and a few dozen tries prove nothing.
    assert!(cores.work < 1000 || swapped.load(Ordering::Relaxed) > 0, "not one swap succeeded");
}
