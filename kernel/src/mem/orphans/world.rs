//! The heap as the collector sees it, and where the marks for it lie: in memory that the heap set aside at its start,
//! because there may be none left when it is needed most. That is 1.6 % of the heap.

use core::ops::Range;
use core::ptr::{self, NonNull};

use super::collect::{Extent, World};
use super::marks::{Mark, MarkedWords, Marks};
use crate::arch::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::arch::clock;
use crate::mem::heap::Heap;
use crate::mem::reserved::Reserved;

/// Where the heap's memory lies, and the marks for it.
pub(in crate::mem) struct Memory {
    base: AtomicUsize,
    marks: Reserved<AtomicU64>,
    marked_words: MarkedWords,
}

impl Memory {
    pub(in crate::mem) const fn empty() -> Self {
        Self { base: AtomicUsize::new(0), marks: Reserved::empty(), marked_words: MarkedWords::none() }
    }

    /// Bytes of the marks for this many bytes.
    pub(in crate::mem) const fn bytes_for(bytes: usize) -> usize {
        Marks::words_for(bytes) * size_of::<u64>()
    }

    /// # Safety
    /// `marks` has room for the words of so many bytes, and is used for nothing else. Called once, before anything else.
    pub(in crate::mem) unsafe fn init(&self, marks: NonNull<u8>, base: usize, bytes: usize) {
        // Relaxed, here and below: as in `Reserved`.
        self.base.store(base, Ordering::Relaxed);
        // SAFETY: the caller promised room for the words, used for nothing else.
        unsafe { self.marks.init(marks, Marks::words_for(bytes), || AtomicU64::new(0)) };
    }

    /// The marks of all of it; of nothing without memory.
    #[inline]
    pub(super) fn marks(&self) -> Marks<'_> {
        Marks::new(self.marks.all(), self.base.load(Ordering::Relaxed), &self.marked_words)
    }
}

/// The heap while nobody else is in it, and what else there is.
pub(super) struct Walk<'a, R, U> {
    heap: &'a Heap,
    each_root: &'a R,
    each_unused: &'a U,
    /// The time at which looking has taken too long, in clock ticks.
    end: u64,
}

impl<'a, R, U> Walk<'a, R, U> {
    /// # Safety
    /// Nobody else is in the heap as long as this is used.
    pub(super) unsafe fn new(heap: &'a Heap, each_root: &'a R, each_unused: &'a U, end: u64) -> Self {
        Self { heap, each_root, each_unused, end }
    }
}

fn extent((start, bytes): (usize, usize)) -> Extent {
    Extent { start, bytes }
}

impl<R: Fn(&mut dyn FnMut(Range<usize>)), U: Fn(&mut dyn FnMut(usize))> World for Walk<'_, R, U> {
    fn block_at(&self, address: usize) -> Option<Extent> {
        // SAFETY: by the contract of `new`, here and below.
        unsafe { self.heap.block_at(address) }.map(extent)
    }

    fn block_from(&self, address: usize) -> Option<Extent> {
        // SAFETY: as above.
        unsafe { self.heap.block_from(address) }.map(extent)
    }

    fn each_free(&self, visit: &mut dyn FnMut(Extent)) {
        // SAFETY: as above; the callback that is shown a block does not allocate.
        unsafe { self.heap.for_each_free_block(|start, bytes| visit(Extent { start, bytes })) };
        (self.each_unused)(&mut |address| self.block_at(address).into_iter().for_each(&mut *visit));
    }

    fn each_block(&self, visit: &mut dyn FnMut(Extent)) {
        // SAFETY: as above.
        unsafe { self.heap.for_each_block(|start, bytes| visit(Extent { start, bytes })) };
    }

    fn each_root(&self, visit: &mut dyn FnMut(Range<usize>)) {
        (self.each_root)(visit);
    }

    fn is_over(&self) -> bool {
        clock::now() >= self.end
    }
}

/// Frees the candidates among the marks, and returns how many and their bytes. They are overwritten, because their
/// content would look like live pointers as soon as the memory is used again.
///
/// # Safety
/// Nobody else is in the heap, and nobody uses the candidates.
pub(super) unsafe fn free_candidates(heap: &Heap, marks: &Marks<'_>) -> (u64, u64) {
    let (mut blocks, mut bytes) = (0, 0);
    let mut from = marks.base();
    while let Some(start) = marks.next_candidate(from) {
        from = start + 1;
        // SAFETY: the caller promised that nobody else is in the heap.
        let Some((begins, length)) = (unsafe { heap.block_at(start) }) else { continue };
        if begins == start {
            // SAFETY: the caller promised that nobody uses the candidates.
            unsafe { ptr::with_exposed_provenance_mut::<u8>(start).write_bytes(0, length) };
        }
        // SAFETY: nobody else is in the heap and nobody uses the candidates, as the caller promised.
        if unsafe { heap.free_at(start) } {
            marks.set(start, Mark::Live);
            blocks += 1;
            bytes += length as u64;
        }
    }
    (blocks, bytes)
}

#[cfg(test)]
mod tests {
    use super::super::collect::Collector;
    use super::{Walk, free_candidates};
    use crate::checks::Random;
    use crate::mem::heap::TestHeap;
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use core::alloc::{GlobalAlloc, Layout};
    use core::ops::Range;

    fn layout(random: &Random) -> Layout {
        let size = match random.below(8) {
            0..6 => 16 + random.below(700),
            6 => 16 + random.below(10_000),
            _ => 16 + random.below(200_000),
        };
        let alignment = if random.below(16) == 0 { 1 << random.below(13) } else { 8 };
        Layout::from_size_align(size, alignment).expect("valid")
    }

    fn no_unused(_: &mut dyn FnMut(usize)) {}

    fn no_roots(_: &mut dyn FnMut(Range<usize>)) {}

    /// In a heap in which much was allocated and freed, until memory was short and beyond: exactly those chains of
    /// blocks are freed that only orphans lead to.
    #[test]
    fn it_agrees_with_a_map_of_what_is_in_use() {
        let heap = TestHeap::new(4 << 20);
        let mut collector = Box::new(Collector::new());
        let (mut freed, mut was_short) = (0, false);
        for seed in 0..12 {
            let random = Random::new(seed, 3);
            let mut model: BTreeMap<usize, (*mut u8, Layout)> = BTreeMap::new();
            for _ in 0..6000 {
                if random.below(100) < 60 {
                    let layout = layout(&random);
                    // SAFETY: the size is not zero, and what is written fits.
                    unsafe {
                        let block = heap.alloc(layout);
                        if block.is_null() {
                            was_short = true;
                            continue;
                        }
                        // All of the block: what was there before would count, too.
                        let start = block.expose_provenance();
                        let (_, bytes) = heap.block_at(start).expect("it is one");
                        block.write_bytes(0, bytes);
                        model.insert(block.expose_provenance(), (block, layout));
                    }
                } else if let Some(start) = model.keys().copied().nth(random.below(model.len().max(1))) {
                    let (block, layout) = model.remove(&start).expect("in use");
                    // SAFETY: allocated with this layout.
                    unsafe { heap.dealloc(block, layout) };
                }
            }
            // Chains: each block points to the next. Those of odd number hang on a live one, which nothing leads to.
            let starts: Vec<usize> = model.keys().copied().collect();
            let chains: Vec<&[usize]> = starts.chunks(1 + random.below(9)).collect();
            for chain in &chains {
                for pair in chain.windows(2) {
                    let inside = random.below(model[&pair[1]].1.size());
                    // SAFETY: every block has room for a word.
                    unsafe { model[&pair[0]].0.cast::<usize>().write_unaligned(pair[1] + inside) };
                }
            }
            let orphans: Vec<usize> = chains
                .iter()
                .enumerate()
                .flat_map(|(number, chain)| if number % 2 == 0 { &chain[..1] } else { &chain[1..] })
                .map(|start| start + random.below(model[start].1.size()))
                .collect();
            let marks = heap.marked.marks();
            // Those of the rounds before are not meant.
            marks.clear();
            orphans.into_iter().for_each(|address| _ = marks.note(address));
            // SAFETY: nobody else uses the heap, here and below.
            unsafe { collector.mark(&Walk::new(&heap, &no_roots, &no_unused, u64::MAX), &marks) };
            let before = heap.usage().0;
            // SAFETY: nobody uses what only the orphans lead to, below.
            let (blocks, bytes) = unsafe { free_candidates(&heap, &marks) };
            let expected: Vec<usize> =
                chains.iter().step_by(2).flat_map(|chain| chain.iter().copied()).collect();
            assert_eq!(blocks as usize, expected.len());
            assert_eq!(heap.usage().0, before - bytes as usize);
            freed += blocks;
            for start in expected {
                model.remove(&start);
            }
            for (block, layout) in model.into_values() {
                // SAFETY: allocated with this layout.
                unsafe { heap.dealloc(block, layout) };
            }
            assert_eq!(heap.usage().0, 0, "bytes in use, though all was given back");
        }
        assert!(freed > 1000 && was_short, "{freed} were freed");
    }
}
