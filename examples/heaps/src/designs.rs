//! What is compared as the central heap.

use core::alloc::Layout;
use core::ptr::NonNull;

use magpie::internals::mem::central::Central;

use crate::region::Region;

/// An allocator in a region of its own.
pub trait Design {
    /// What it is called.
    const NAME: &'static str;

    /// Made of a region, which stays as long.
    fn new(region: &Region) -> Self;
    /// A block.
    fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>>;
    /// Takes it back.
    ///
    /// # Safety
    /// The block came from here with this layout, and nobody uses it any more.
    unsafe fn free(&mut self, block: NonNull<u8>, layout: Layout);
}

/// `linked_list_allocator`: one list of holes, in the order of their addresses. The yardstick.
pub struct LinkedList(linked_list_allocator::Heap);

impl Design for LinkedList {
    const NAME: &'static str = "linked_list_allocator";

    fn new(region: &Region) -> Self {
        // SAFETY: the region is used for nothing else.
        Self(unsafe { linked_list_allocator::Heap::new(region.start.as_ptr(), region.bytes()) })
    }

    fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        self.0.allocate_first_fit(layout).ok()
    }

    unsafe fn free(&mut self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: by contract.
        unsafe { self.0.deallocate(block, layout) };
    }
}

/// `talc`, as the kernel uses it.
pub struct Talc(Central);

impl Design for Talc {
    const NAME: &'static str = "talc";

    fn new(region: &Region) -> Self {
        let mut central = Central::empty();
        // SAFETY: the region is used for nothing else; called once.
        unsafe { central.add(region.start, region.bytes()) };
        Self(central)
    }

    fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        self.0.allocate(layout)
    }

    unsafe fn free(&mut self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: by contract.
        unsafe { self.0.deallocate(block, layout) };
    }
}
