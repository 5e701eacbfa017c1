//! Walking the heap: which block an address is in, which blocks there are, and which of them are free.
//!
//! For code that looks at all of memory while every other core stands still. Allocating and freeing do not pay for it,
//! except that large blocks are noted in a table ([`large_table`](super::large_table)).
//!
//! A small block that was freed is still a block, of its span, until the span goes back to the central heap. Large blocks
//! are blocks only while they are in use; memory of the central heap, and what was not cut off a span yet, is in none.
//!
//! What must hold for all of it: **nobody else is in the heap**. The other cores are stopped, none of them with preemption
//! disabled, and no process is suspended in the middle of allocating or freeing: those hold a lock or a preemption guard
//! wherever a block is neither free nor the caller's.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};

use super::heap::Heap;
use super::large_table::GRANULE_BYTES;
use super::size_class::SizeClass;
use super::span::Span;
use super::span_table::UNIT_BYTES;

impl Heap {
    /// Start and bytes of the block that the address is in, whether it is in use or free.
    ///
    /// # Safety
    /// Nobody else is in the heap.
    pub(crate) unsafe fn block_at(&self, address: usize) -> Option<(usize, usize)> {
        let Some(span) = self.table.find_at(address) else { return self.large.find(address) };
        // SAFETY: the caller promised that nobody else is in the heap.
        let (start, class) = unsafe { Span::block_at(span, address) }?;
        Some((start, class.block_bytes()))
    }

    /// Start and bytes of the block that begins exactly there. Takes the same time wherever that is.
    ///
    /// # Safety
    /// Nobody else is in the heap.
    pub(crate) unsafe fn block_from(&self, address: usize) -> Option<(usize, usize)> {
        let Some(span) = self.table.find_at(address) else { return self.large.begins_at(address) };
        // SAFETY: the caller promised that nobody else is in the heap.
        let (start, class) = unsafe { Span::block_at(span, address) }?;
        (start == address).then_some((start, class.block_bytes()))
    }

    /// Calls for every block, with its start and bytes.
    ///
    /// # Safety
    /// Nobody else is in the heap, nor is `tell`.
    pub(crate) unsafe fn for_each_block(&self, mut tell: impl FnMut(usize, usize)) {
        // SAFETY: the caller promised that nobody else is in the heap, nor `tell`.
        self.table.for_each(|span| unsafe { Span::for_each_block(span, &mut tell) });
        self.large.for_each(tell);
    }

    /// Calls for every block that is free: in a core's cache, in a depot, or in its span.
    ///
    /// # Safety
    /// Nobody else is in the heap, nor is `tell`.
    pub(crate) unsafe fn for_each_free_block(&self, mut tell: impl FnMut(usize, usize)) {
        // SAFETY: the caller promised that nobody else is in the heap, nor `tell`; here and below.
        unsafe { self.caches.for_each_waiting(|start, class| tell(start, class.block_bytes())) };
        self.table.for_each(|span| {
            // SAFETY: as above.
            unsafe {
                let (list, class) = Span::free_blocks(span);
                list.for_each(|start| tell(start, class.block_bytes()));
            }
        });
    }

    /// Frees the block that begins there. Returns whether one does.
    ///
    /// # Safety
    /// Nobody else is in the heap. The block is in use, and nobody uses it any more.
    pub(crate) unsafe fn free_at(&self, start: usize) -> bool {
        let Some(block) = NonNull::new(ptr::with_exposed_provenance_mut::<u8>(start)) else { return false };
        // SAFETY: the caller promised that nobody else is in the heap.
        let small = self.table.find_at(start).map(|span| unsafe { Span::block_at(span, start) });
        let (begins, class, bytes) = match small {
            Some(Some((begins, class))) => (begins, Some(class), class.block_bytes()),
            Some(None) => return false,
            None => match self.large.find(start) {
                // A small one that is not of a span.
                Some((begins, bytes)) if bytes <= GRANULE_BYTES => (begins, small_class(bytes), bytes),
                Some((begins, bytes)) => (begins, None, bytes),
                None => return false,
            },
        };
        if begins != start {
            return false;
        }
        // SAFETY: the caller promised that the block is in use, and that nobody uses it any more.
        unsafe { self.end_charge_at(start, bytes) };
        match (class, Layout::from_size_align(bytes, UNIT_BYTES)) {
            (Some(class), _) => {
                let Ok(layout) = Layout::from_size_align(class.block_bytes(), 1) else { return false };
                // SAFETY: the block is in use and of this class, so of this layout.
                unsafe { self.dealloc(block.as_ptr(), layout) };
            }
            // SAFETY: the block is in use; the table has the size that it was given out with.
            (None, Ok(layout)) => unsafe { self.give_noted(block, layout) },
            (None, Err(_)) => return false,
        }
        true
    }
}

/// The class of blocks of exactly this many bytes.
fn small_class(bytes: usize) -> Option<SizeClass> {
    SizeClass::of(Layout::from_size_align(bytes, 1).ok()?)
}

#[cfg(test)]
mod tests {
    use crate::checks::Random;
    use crate::mem::heap::{Heap, TestHeap, layout};
    use alloc::collections::{BTreeMap, BTreeSet};
    use alloc::vec::Vec;
    use core::alloc::{GlobalAlloc, Layout};

    /// The walk's answers against a map of what is in use.
    fn agrees(heap: &Heap, model: &BTreeMap<usize, Layout>) {
        let (mut all, mut free) = (BTreeMap::new(), BTreeSet::new());
        // SAFETY: nobody else has this heap.
        unsafe {
            heap.for_each_block(|start, bytes| assert!(all.insert(start, bytes).is_none(), "told twice"));
            heap.for_each_free_block(|start, bytes| {
                assert!(free.insert(start), "free twice");
                assert_eq!(all.get(&start), Some(&bytes), "free, and no block");
            });
        }
        let used: Vec<_> = all.keys().filter(|start| !free.contains(start)).copied().collect();
        assert_eq!(used, model.keys().copied().collect::<Vec<_>>());
        let mut end = 0;
        for (start, bytes) in all {
            assert!(end <= start, "blocks overlap");
            end = start + bytes;
            assert!(model.get(&start).is_none_or(|layout| layout.size() <= bytes));
            for inside in [0, 1, bytes / 2, bytes - 1] {
                // SAFETY: as above.
                assert_eq!(unsafe { heap.block_at(start + inside) }, Some((start, bytes)));
                // SAFETY: as above.
                let from = unsafe { heap.block_from(start + inside) };
                assert_eq!(from, (inside == 0).then_some((start, bytes)));
            }
            // SAFETY: as above.
            unsafe {
                assert_ne!(heap.block_at(start + bytes), Some((start, bytes)));
                assert!(!heap.free_at(start + 1), "freed from its middle");
            }
        }
    }

    /// Blocks come and go, also with memory used up; some go by their address alone, whatever they are.
    #[test]
    fn it_finds_what_there_is() {
        let heap = TestHeap::new(6 << 20);
        let before = heap.usage();
        for seed in 0..3 {
            let random = Random::new(seed, 3);
            let mut model = BTreeMap::new();
            let mut alone = 0;
            for step in 0..3000 {
                let grows = if step % 1000 < 700 { 7 } else { 2 };
                if random.below(10) < grows {
                    let layout = layout(&random);
                    // SAFETY: no size is zero.
                    let block = unsafe { heap.alloc(layout) };
                    if !block.is_null() {
                        model.insert(block.expose_provenance(), layout);
                    }
                } else if !model.is_empty() {
                    let (&start, &layout) = model.iter().nth(random.below(model.len())).expect("not empty");
                    model.remove(&start);
                    // SAFETY: allocated with this layout, and in use.
                    unsafe {
                        if step % 2 == 0 {
                            assert!(heap.free_at(start));
                        } else {
                            heap.dealloc(core::ptr::with_exposed_provenance_mut(start), layout);
                        }
                    }
                }
                if step % 1000 == 650 {
                    // No room for a span: small blocks that belong to no span.
                    for size in [9000, 40] {
                        let layout = Layout::from_size_align(size, 16).expect("valid");
                        // SAFETY: the size is not zero.
                        while let Some(block) = core::ptr::NonNull::new(unsafe { heap.alloc(layout) }) {
                            alone += usize::from(size < 2048 && heap.table.find(block).is_none());
                            model.insert(block.as_ptr().expose_provenance(), layout);
                        }
                    }
                }
                if step % 250 == 249 || step % 1000 == 651 {
                    agrees(&heap, &model);
                }
            }
            assert!(alone > 0, "no block was alone");
            for start in model.into_keys() {
                // SAFETY: in use.
                assert!(unsafe { heap.free_at(start) });
            }
            agrees(&heap, &BTreeMap::new());
            assert_eq!(heap.usage().0, 0);
            heap.give_up_all();
            assert_eq!(heap.usage(), before);
        }
    }

    #[test]
    fn there_is_nothing_outside_of_blocks() {
        let heap = TestHeap::new(1 << 20);
        let start = heap.region.start().as_ptr().addr();
        for address in [0, 1, start - 1, start, start + 5000, start + (1 << 20), usize::MAX] {
            // SAFETY: nobody else has this heap.
            unsafe {
                assert_eq!(heap.block_at(address), None);
                assert!(!heap.free_at(address));
            }
        }
    }
}
