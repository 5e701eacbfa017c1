//! Limits on a heap of a host: what is charged, against a model, and what comes back whatever way a block goes.

use super::{ACCOUNTS, LEAST_CHARGED_BYTES, MemoryLimit};
use crate::checks::Random;
use crate::mem::heap::{TestHeap, layout, noted};
use crate::mem::size_class::SizeClass;
use crate::sync::PaidBy;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};

fn heap_with_accounts(bytes: usize) -> TestHeap {
    let heap = TestHeap::new(bytes);
    heap.keep_accounts().expect("there is memory");
    heap
}

fn paid_by(limit: &MemoryLimit) -> PaidBy {
    PaidBy::account(limit.payer().number().into())
}

/// Blocks of any layout, allocated by two accounts and by nobody, grow, shrink, and are freed by whomever, some by their addresses
/// alone, until memory is short: each account has in use exactly what its blocks have.
#[test]
fn every_account_has_what_its_blocks_have() {
    let heap = heap_with_accounts(3 << 20);
    let free = heap.usage();
    let limits = [MemoryLimit::new(1 << 20).expect("free"), MemoryLimit::new(200_000).expect("free")];
    let (mut by_limit, mut by_memory) = (0, 0);
    for seed in 0..4 {
        let random = Random::new(seed, 5);
        // By address: pointer, layout, and who pays.
        let mut model: BTreeMap<usize, (*mut u8, Layout, Option<usize>)> = BTreeMap::new();
        for step in 0..12_000 {
            let who = random.below(3);
            let asker = limits.get(who);
            let _payer = asker.map(paid_by);
            let grows = if step % 4000 < 2500 { 6 } else { 2 };
            let any = model.keys().copied().nth(random.below(model.len().max(1)));
            match (random.below(10), any) {
                (choice, _) if choice < grows => {
                    let layout = if step % 7 == 0 { layout(&random) } else { short(&random) };
                    let exceeds = asker.is_some_and(|limit| limit.used() + charged(layout) > limit.bytes());
                    let before = asker.map(MemoryLimit::used);
                    // SAFETY: the size is not zero.
                    let block = unsafe { heap.alloc(layout) };
                    assert!(!exceeds || block.is_null(), "above a limit");
                    if block.is_null() {
                        assert_eq!(asker.map(MemoryLimit::used), before, "charged for what was refused");
                        *if exceeds { &mut by_limit } else { &mut by_memory } += 1;
                        continue;
                    }
                    // SAFETY: the block is that long.
                    unsafe { block.write_bytes(step as u8, layout.size()) };
                    model.insert(block.expose_provenance(), (block, layout, asker.map(|_| who)));
                }
                (8, Some(start)) => {
                    let (block, old, payer) = model[&start];
                    let size = 1 + random.below(old.size() * 2);
                    // SAFETY: allocated with this layout; the size is not zero.
                    let again = unsafe { heap.realloc(block, old, size) };
                    if !again.is_null() {
                        model.remove(&start);
                        let new = Layout::from_size_align(size, old.align()).expect("valid");
                        // Who moves it pays for it.
                        let payer = if again == block { payer } else { asker.map(|_| who) };
                        model.insert(again.expose_provenance(), (again, new, payer));
                    }
                }
                (_, Some(start)) => {
                    let (block, layout, _) = model.remove(&start).expect("in use");
                    // SAFETY: allocated with this layout; nobody else is in the heap.
                    unsafe {
                        if step % 3 == 0 {
                            assert!(heap.free_at(start));
                        } else {
                            heap.dealloc(block, layout);
                        }
                    }
                }
                _ => {}
            }
            if step % 250 == 0 {
                let mut used = [0; 2];
                for (start, (_, layout, payer)) in &model {
                    // SAFETY: nobody else is in the heap.
                    let (begins, bytes) = unsafe { heap.block_at(*start) }.expect("it is one");
                    assert_eq!(begins, *start);
                    if let Some(payer) = payer {
                        assert!(bytes >= layout.size().max(LEAST_CHARGED_BYTES));
                        used[*payer] += charged(*layout);
                    }
                }
                assert_eq!(limits.each_ref().map(MemoryLimit::used), used);
                assert!(limits.iter().all(|limit| limit.used() <= limit.bytes()));
            }
        }
        for (block, layout, _) in model.into_values() {
            // SAFETY: allocated with this layout.
            unsafe { heap.dealloc(block, layout) };
        }
        assert_eq!(limits.each_ref().map(MemoryLimit::used), [0, 0]);
        heap.give_up_all();
        assert_eq!(heap.usage(), free);
    }
    assert!(by_limit > 100 && by_memory > 0, "{by_limit} refused by limits, {by_memory} for want of memory");
}

fn short(random: &Random) -> Layout {
    Layout::from_size_align(1 + random.below(200), 1 << random.below(5)).expect("valid")
}

/// What is charged for a block.
fn charged(layout: Layout) -> usize {
    let layout =
        Layout::from_size_align(layout.size().max(LEAST_CHARGED_BYTES), layout.align()).expect("valid");
    SizeClass::of(layout).map_or_else(|| noted(layout).size(), SizeClass::block_bytes)
}

/// Blocks shorter than what can be charged lie beside long ones that are: freeing those takes nothing from any account.
#[test]
fn a_short_block_never_pays_for_its_neighbour() {
    let heap = heap_with_accounts(4 << 20);
    let limit = MemoryLimit::new(4 << 20).expect("free");
    let random = Random::new(1, 6);
    let (short, long) = (Layout::new::<u8>(), Layout::new::<[u64; 257]>());
    let (mut shorts, mut longs) = (Vec::new(), Vec::new());
    // Spans and large blocks side by side.
    for _ in 0..300 {
        // SAFETY: no size is zero, here and below.
        shorts.extend(
            (0..random.below(600)).map(|_| unsafe { heap.alloc(short) }).filter(|block| !block.is_null()),
        );
        let _payer = paid_by(&limit);
        // SAFETY: as above.
        longs.extend(Some(unsafe { heap.alloc(long) }).filter(|block| !block.is_null()));
    }
    let used = limit.used();
    assert!(longs.len() > 100 && shorts.len() > 10_000 && used >= longs.len() * long.size());
    // SAFETY: allocated above, with these layouts.
    shorts.into_iter().for_each(|block| unsafe { heap.dealloc(block, short) });
    assert_eq!(limit.used(), used);
    // SAFETY: as above.
    longs.into_iter().for_each(|block| unsafe { heap.dealloc(block, long) });
    assert_eq!(limit.used(), 0);
}

/// A block that was there before the first limit is nobody's, and stays so.
#[test]
fn what_was_there_before_is_nobodys() {
    let heap = TestHeap::new(2 << 20);
    let limit = MemoryLimit::new(1 << 20).expect("free");
    let _payer = paid_by(&limit);
    let layout = Layout::new::<[u64; 20]>();
    // SAFETY: the size is not zero; each block is freed with its layout.
    unsafe {
        let before = heap.alloc(layout);
        assert_eq!(limit.used(), 0, "charged without a table");
        heap.keep_accounts().expect("there is memory");
        let after = heap.alloc_zeroed(layout);
        assert_eq!(limit.used(), 160);
        heap.dealloc(before, layout);
        assert_eq!(limit.used(), 160);
        heap.dealloc(after, layout);
    }
    assert_eq!((limit.used(), limit.most_used()), (0, 160));
}

#[test]
fn without_memory_there_are_no_accounts() {
    let heap = TestHeap::new(1 << 20);
    let layout = Layout::from_size_align(1 << 13, 16).expect("valid");
    // SAFETY: the size is not zero.
    let blocks: Vec<_> =
        core::iter::from_fn(|| core::ptr::NonNull::new(unsafe { heap.alloc(layout) })).collect();
    assert!(heap.keep_accounts().is_err() && heap.owners.table().is_none());
    // SAFETY: allocated above.
    blocks.into_iter().for_each(|block| unsafe { heap.dealloc(block.as_ptr(), layout) });
    assert!(heap.keep_accounts().is_ok() && heap.owners.table().is_some());
}

/// Sections nest, and end where they should.
#[test]
fn nobody_pays_in_a_section_of_the_kernels() {
    let heap = heap_with_accounts(1 << 20);
    let limit = MemoryLimit::new(4096).expect("free");
    let layout = Layout::new::<[u64; 100]>();
    let _payer = paid_by(&limit);
    // SAFETY: the size is not zero; each block is freed with its layout.
    unsafe {
        let (free, paid) = {
            let _nobody = PaidBy::nobody();
            (heap.alloc(layout), {
                let _payer = paid_by(&limit);
                heap.alloc(layout)
            })
        };
        let used = limit.used();
        assert!((800..1600).contains(&used), "{used}");
        let again = heap.alloc(layout);
        assert_eq!(limit.used(), 2 * used);
        [free, paid, again].into_iter().for_each(|block| heap.dealloc(block, layout));
    }
    assert_eq!(limit.used(), 0);
    assert!(ACCOUNTS.lives(limit.payer()));
}
