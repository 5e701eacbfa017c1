//! The heap on a host: against a model, with several parts, and with what other tests of `mem` need.

use super::{Heap, SizeClass};
use crate::checks::Random;
use alloc::boxed::Box;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use core::alloc::{GlobalAlloc, Layout};
use core::ops::Range;

/// Memory from the host, for a heap to be made of.
pub(in crate::mem) struct Region {
    memory: *mut u8,
    layout: Layout,
}

impl Region {
    pub(in crate::mem) fn new(bytes: usize) -> Self {
        let layout = Layout::from_size_align(bytes, 4096).expect("valid");
        // SAFETY: the size is not zero.
        let memory = unsafe { std::alloc::alloc(layout) };
        assert!(!memory.is_null());
        Self { memory, layout }
    }

    /// Where it begins.
    pub(in crate::mem) fn start(&self) -> core::ptr::NonNull<u8> {
        core::ptr::NonNull::new(self.memory).expect("checked in `new`")
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout.
        unsafe { std::alloc::dealloc(self.memory, self.layout) };
    }
}

/// A heap in memory of its own, which begins where nothing is aligned.
pub(in crate::mem) struct TestHeap {
    heap: Box<Heap>,
    pub(in crate::mem) region: Region,
    parts: Vec<Range<usize>>,
}

impl TestHeap {
    pub(in crate::mem) fn new(bytes: usize) -> Self {
        Self::in_parts(bytes, core::slice::from_ref(&(8..bytes)))
    }

    /// A heap of these parts of a region: from so many bytes after its beginning to so many.
    fn in_parts(bytes: usize, parts: &[Range<usize>]) -> Self {
        let (heap, region) = (Box::new(Heap::empty()), Region::new(bytes));
        let start = region.memory.expose_provenance();
        let parts: Vec<_> = parts.iter().map(|part| start + part.start..start + part.end).collect();
        // SAFETY: the region is used for nothing else.
        unsafe { heap.init(&parts) };
        Self { heap, region, parts }
    }
}

impl core::ops::Deref for TestHeap {
    type Target = Heap;

    fn deref(&self) -> &Heap {
        &self.heap
    }
}

impl Heap {
    /// Gives up whatever can be.
    pub(in crate::mem) fn give_up_all(&self) {
        assert_eq!(self.give_up_kept_until(|| None::<()>), None);
    }
}

/// Any layout that a program may ask for.
pub(in crate::mem) fn layout(random: &Random) -> Layout {
    let size = match random.below(10) {
        0..7 => 1 + random.below(2048),
        7..9 => 1 + random.below(40_000),
        _ => 1 + random.below(400_000),
    };
    let alignment = if random.below(8) == 0 { 1 << random.below(13) } else { 16 };
    Layout::from_size_align(size, alignment).expect("valid")
}

/// Any layouts in any order, until memory is short and beyond, against a map of what is in use.
/// Nobody writes behind what was asked for, so what others left there would stay for ever.
#[test]
fn nothing_is_left_behind_what_is_asked_for() {
    let heap = TestHeap::new(1 << 20);
    for (size, align) in (1..=2048).flat_map(|size| [1, 64, 2048].map(|align| (size, align))) {
        let of = |size| Layout::from_size_align(size, align).expect("valid");
        let whole = SizeClass::of(of(size)).expect("small").block_bytes();
        // SAFETY: what is written fits, and what is read lies in the block that was just made.
        unsafe {
            let full = heap.alloc(of(whole));
            full.write_bytes(0xff, whole);
            heap.dealloc(full, of(whole));
            let block = heap.alloc(of(size));
            assert_eq!(block, full, "not the same block, of {size} bytes");
            let behind = core::slice::from_raw_parts(block.add(size), whole - size);
            assert!(behind.iter().all(|&byte| byte == 0), "behind {size} bytes, aligned to {align}");
            heap.dealloc(block, of(size));
        }
    }
}

#[test]
fn it_agrees_with_a_map_of_what_is_in_use() {
    agrees_with_a_map(&TestHeap::new(8 << 20));
}

/// Memory with gaps, as a device tree, an input, or other nodes' memory in between leaves it.
#[test]
fn it_is_made_of_several_parts() {
    let parts = [8..1_000_000, 1_048_576..2_500_001, 3 << 20..3 << 20 | 16, 4 << 20..12 << 20];
    let heap = TestHeap::in_parts(12 << 20, &parts);
    agrees_with_a_map(&heap);
    // No part is left out, and none is joined with what lies behind it.
    let free = heap.usage().1;
    assert!(free > 10_000_000 && free < 11_500_000, "{free}");
    let page = Layout::from_size_align(4096, 16).expect("valid");
    // SAFETY: the size is not zero.
    let pages: Vec<_> =
        core::iter::from_fn(|| core::ptr::NonNull::new(unsafe { heap.alloc(page) })).collect();
    for part in [0, 1, 3].map(|index| &heap.parts[index]) {
        let inside = pages.iter().filter(|block| part.contains(&block.addr().get())).count();
        assert!(inside * 4096 > part.len() / 10 * 9, "{inside} in {part:x?}");
    }
    // SAFETY: allocated above.
    pages.iter().for_each(|block| unsafe { heap.dealloc(block.as_ptr(), page) });
    assert_eq!(heap.usage().1, free);
}

fn agrees_with_a_map(heap: &TestHeap) {
    let all: usize = heap.parts.iter().map(Range::len).sum();
    let before = heap.usage();
    assert!(before.0 == 0 && before.1 > all / 100 * 97, "{before:?}");
    let (mut refused, mut moved) = (0, 0);
    for seed in 0..6 {
        let random = Random::new(seed, 1);
        let mut model: BTreeMap<usize, (*mut u8, Layout)> = BTreeMap::new();
        let mut starts: Vec<usize> = Vec::new();
        let check = |model: &BTreeMap<usize, (*mut u8, Layout)>, block: *mut u8, layout: Layout| {
            let (start, end) = (block.addr(), block.addr() + layout.size());
            assert!(start.is_multiple_of(layout.align()));
            assert!(heap.parts.iter().any(|part| part.start <= start && end <= part.end));
            assert!(model.range(..start).next_back().is_none_or(|(at, (_, was))| at + was.size() <= start));
            assert!(model.range(start..).next().is_none_or(|(at, _)| end <= *at));
        };
        for step in 0..12_000 {
            // SAFETY: no size is zero; blocks go back with the layout they have.
            unsafe {
                match random.below(20) {
                    0..9 => {
                        let layout = layout(&random);
                        let block = heap.alloc(layout);
                        if block.is_null() {
                            refused += 1;
                            continue;
                        }
                        check(&model, block, layout);
                        block.write_bytes(step as u8, layout.size());
                        model.insert(block.addr(), (block, layout));
                        starts.push(block.addr());
                    }
                    9 if !starts.is_empty() => {
                        let start = starts.swap_remove(random.below(starts.len()));
                        let (block, old) = model[&start];
                        let size = 1 + random.below(old.size() * 2);
                        let byte = block.read();
                        let again = heap.realloc(block, old, size);
                        let (block, new) = if again.is_null() {
                            (block, old)
                        } else {
                            model.remove(&start);
                            (again, Layout::from_size_align(size, old.align()).expect("valid"))
                        };
                        if again != block || again.addr() != start {
                            moved += 1;
                        }
                        assert_eq!(block.read(), byte);
                        if !again.is_null() {
                            check(&model, block, new);
                            // The same byte all over, as when it was allocated.
                            block.write_bytes(byte, new.size());
                        }
                        model.insert(block.addr(), (block, new));
                        starts.push(block.addr());
                    }
                    10.. if !starts.is_empty() => {
                        let start = starts.swap_remove(random.below(starts.len()));
                        let (block, layout) = model.remove(&start).expect("in use");
                        let bytes = core::slice::from_raw_parts(block, layout.size());
                        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "somebody wrote into a block");
                        heap.dealloc(block, layout);
                    }
                    _ => {}
                }
            }
            if step % 500 == 0 {
                let asked: usize = model.values().map(|(_, layout)| layout.size()).sum();
                let (used, free) = heap.usage();
                assert!(used >= asked, "{asked} bytes are in use, not {used}");
                assert!(used + free + heap.kept() <= all);
            }
            // Now and then memory runs out.
            if step % 3000 == 2000 {
                let layout = Layout::from_size_align(9000, 16).expect("valid");
                // SAFETY: the size is not zero.
                while let Some(block) = core::ptr::NonNull::new(unsafe { heap.alloc(layout) }) {
                    let block = block.as_ptr();
                    check(&model, block, layout);
                    // SAFETY: the block is that long.
                    unsafe { block.write_bytes(7, layout.size()) };
                    model.insert(block.addr(), (block, layout));
                    starts.push(block.addr());
                }
            }
        }
        for (block, layout) in model.into_values() {
            // SAFETY: allocated with this layout.
            unsafe { heap.dealloc(block, layout) };
        }
        assert_eq!(heap.usage().0, 0, "bytes in use, though all was given back");
        heap.give_up_all();
        assert_eq!(heap.usage(), before);
        assert_eq!(heap.kept(), 0);
    }
    assert!(refused > 100 && moved > 100, "{refused} were refused, {moved} moved");
}

/// With no room for a span left, small blocks are made of what there is, and go back to where they came from.
#[test]
fn the_last_memory_serves_small_blocks() {
    let heap = TestHeap::new(1 << 20);
    let before = heap.usage();
    let (large, small) = (Layout::new::<[u64; 1000]>(), Layout::new::<[u64; 10]>());
    let mut blocks = Vec::new();
    for layout in [large, small] {
        // SAFETY: the size is not zero.
        while let Some(block) = core::ptr::NonNull::new(unsafe { heap.alloc(layout) }) {
            blocks.push((block, layout));
        }
        // Holes, each of them too short for a span.
        for index in [90, 70, 50, 30, 10] {
            let (block, layout) = blocks.swap_remove(index);
            // SAFETY: allocated with this layout.
            unsafe { heap.dealloc(block.as_ptr(), layout) };
        }
    }
    let small_ones = blocks.iter().filter(|(_, layout)| *layout == small).count();
    assert!(small_ones > 10, "{small_ones} small blocks of what was left");
    assert!(heap.usage().1 < 60_000, "{} bytes are left", heap.usage().1);
    for (block, layout) in blocks {
        // SAFETY: allocated with this layout.
        unsafe { heap.dealloc(block.as_ptr(), layout) };
    }
    heap.give_up_all();
    assert_eq!(heap.usage(), before);
}

/// At any size of the memory, a request for all of it as one block never fails because the wrong list was searched.
#[test]
fn nearly_all_of_memory_fits_in_one_block() {
    for megabytes in [1, 3, 64, 890, 1100] {
        let heap = TestHeap::new(megabytes << 20);
        let layout = Layout::from_size_align((megabytes << 20) / 100 * 97, 16).expect("valid");
        // SAFETY: the size is not zero.
        let block = unsafe { heap.alloc(layout) };
        assert!(!block.is_null(), "of {megabytes} MiB");
    }
}

#[test]
fn a_heap_without_memory_refuses() {
    let heap = Box::new(Heap::empty());
    // SAFETY: the sizes are not zero.
    unsafe {
        assert!(heap.alloc(Layout::new::<u64>()).is_null());
        assert!(heap.alloc(Layout::new::<[u64; 1000]>()).is_null());
    }
    assert_eq!(heap.usage(), (0, 0));
}
