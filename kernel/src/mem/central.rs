//! The central heap: memory of any size, for one caller at a time. Spans and large blocks come from here.
//!
//! It is made of `talc`, which keeps free memory in lists by size and knows each block's neighbours: taking and giving
//! take the same time however many holes there are. Two cases take longer, and look through one list at a time: an
//! alignment above 32 bytes, and a request that no list above its own size can serve. `docs/heap.md` compares it with
//! others.

use core::alloc::Layout;
use core::ptr::NonNull;

use talc::base::Talc;
use talc::base::binning::{Binning, linear_extent_then_linearly_divided_exponential_binning};
use talc::source::Manual;

/// Which list holds free memory of which size: 32 bytes apart up to 1 KiB, then eight to each doubling, beyond 128 GiB. The
/// library's own end with one from 896 MiB on, and a request that is almost that long is looked for in this last one
/// only, though the one before may have it.
struct Bins;

impl Binning for Bins {
    type AvailabilityBitField = [usize; 4];

    const BIN_COUNT: u32 = 255;

    fn size_to_bin(size: usize) -> u32 {
        linear_extent_then_linearly_divided_exponential_binning::<8, 4>(size)
    }
}

/// The central heap.
pub struct Central {
    memory: Talc<Manual, Bins>,
}

impl Central {
    /// Without memory.
    pub const fn empty() -> Self {
        Self { memory: Talc::new(Manual) }
    }

    /// Gives it memory. From the first region it takes some for its lists. A region that is too small is not used.
    ///
    /// # Safety
    /// The region is used for nothing else.
    pub unsafe fn add(&mut self, start: NonNull<u8>, length_bytes: usize) {
        // SAFETY: the caller promised that the region is used for nothing else.
        let _ = unsafe { self.memory.claim(start.as_ptr(), length_bytes) };
    }

    /// A block, or `None` when there is no room.
    pub fn allocate(&mut self, layout: Layout) -> Option<NonNull<u8>> {
        // An impossible size must not overflow when something is added to it.
        if layout.size() == 0 || layout.size() > self.free() {
            return None;
        }
        // SAFETY: the size is not zero.
        unsafe { self.memory.try_allocate(layout) }
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// The block came from [`Self::allocate`] with this layout, and nobody uses it any more.
    pub unsafe fn deallocate(&mut self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: the caller promised a block with this layout that nobody uses any more.
        unsafe { self.memory.deallocate(block.as_ptr(), layout) };
    }

    /// Bytes of the blocks that are in use.
    pub fn used(&self) -> usize {
        self.memory.counters().allocated_bytes
    }

    /// Bytes that are free.
    pub fn free(&self) -> usize {
        self.memory.counters().available_bytes
    }
}
