//! One function for each primitive, with a symbol of its own: `cargo xtask test` disassembles this image and
//! looks for the expected exclusives and barriers in each (`xtask/src/testing/instructions.rs`).
//!
//! The kernel itself inlines the primitives everywhere, so they have no symbols there.

use alloc::boxed::Box;
use core::ptr::{self, NonNull};

use magpie::internals::arch::atomic::{AtomicPtr, AtomicU64};
use magpie::internals::arch::{Steal, SwapOutcome, barrier, deque_ops, swap};
use magpie_tests::{LockedQueue, ensure, kernel_test};

type Slots = [AtomicPtr<u64>; 4];

#[unsafe(no_mangle)]
#[inline(never)]
fn probe_push_bottom(top: &AtomicU64, bottom: &AtomicU64, slots: &Slots, item: NonNull<u64>) -> bool {
    // SAFETY: called by one test alone, on a deque of its own.
    unsafe { deque_ops::push_bottom(top, bottom, slots, item) }.is_ok()
}

#[unsafe(no_mangle)]
#[inline(never)]
fn probe_pop_bottom(top: &AtomicU64, bottom: &AtomicU64, slots: &Slots) -> Option<NonNull<u64>> {
    // SAFETY: as above.
    unsafe { deque_ops::pop_bottom(top, bottom, slots) }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn probe_pop_oldest(top: &AtomicU64, bottom: &AtomicU64, slots: &Slots) -> Option<NonNull<u64>> {
    // SAFETY: as above.
    unsafe { deque_ops::pop_oldest(top, bottom, slots) }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn probe_rotate(top: &AtomicU64, bottom: &AtomicU64, slots: &Slots, item: NonNull<u64>) -> NonNull<u64> {
    // SAFETY: as above.
    unsafe { deque_ops::rotate(top, bottom, slots, item) }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn probe_pop_top(top: &AtomicU64, bottom: &AtomicU64, slots: &Slots) -> Option<NonNull<u64>> {
    match deque_ops::pop_top(top, bottom, slots) {
        Steal::Taken(item) => Some(item),
        Steal::Empty | Steal::Lost => None,
    }
}

#[unsafe(no_mangle)]
#[inline(never)]
fn probe_double_swap(thief_slot: &AtomicPtr<u64>, victim_slot: &AtomicPtr<u64>) -> bool {
    matches!(swap::double_swap(thief_slot, victim_slot), SwapOutcome::Swapped { .. })
}

#[unsafe(no_mangle)]
#[inline(never)]
fn probe_locked_append(queue: &LockedQueue, words: [u64; 3]) -> bool {
    queue.append(words)
}

#[unsafe(no_mangle)]
#[inline(never)]
fn probe_barrier_full() {
    barrier::full();
}

kernel_test! {
    /// What is disassembled is what runs.
    async fn the_probes_do_what_the_primitives_do() -> Outcome {
        let (top, bottom) = (AtomicU64::new(1), AtomicU64::new(1));
        let slots: Slots = [const { AtomicPtr::new(ptr::null_mut()) }; 4];
        let mut values = Box::new([0_u64; 3]);
        let items: [NonNull<u64>; 3] = core::array::from_fn(|index| NonNull::from(&mut values[index]));
        for item in items {
            ensure!(probe_push_bottom(&top, &bottom, &slots, item), "there was room");
        }
        probe_barrier_full();
        ensure!(probe_pop_bottom(&top, &bottom, &slots) == Some(items[2]), "the newest");
        ensure!(probe_rotate(&top, &bottom, &slots, items[2]) == items[0], "the oldest");
        ensure!(probe_rotate(&top, &bottom, &slots, items[0]) == items[1], "the next");
        ensure!(probe_pop_oldest(&top, &bottom, &slots) == Some(items[2]), "the oldest");
        ensure!(probe_rotate(&top, &bottom, &slots, items[1]) == items[0], "the last");
        // A single try may lose where stores are made to fail; the next cannot.
        let last = probe_pop_top(&top, &bottom, &slots).or_else(|| probe_pop_top(&top, &bottom, &slots));
        ensure!(last == Some(items[1]), "the last");
        let (thief_slot, victim_slot) = (AtomicPtr::new(items[0].as_ptr()), AtomicPtr::new(items[1].as_ptr()));
        ensure!(probe_double_swap(&thief_slot, &victim_slot) || probe_double_swap(&thief_slot, &victim_slot), "nobody else swaps");
        let queue = LockedQueue::new(3);
        ensure!(probe_locked_append(&queue, [1, 2, 3]), "there was room");
        ensure!(!probe_locked_append(&queue, [4, 5, 6]), "there was none any more");
        Ok(())
    }
}
