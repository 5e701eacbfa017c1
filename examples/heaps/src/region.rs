//! Memory for a heap to be made of, and chance.

use alloc::alloc::{alloc, dealloc};
use core::alloc::Layout;
use core::ops::Range;
use core::ptr::NonNull;

use magpie::internals::Random;

/// A mebibyte.
pub const MEBIBYTE: usize = 1 << 20;

/// So many mebibytes from the machine's own heap.
pub struct Region {
    /// Its first byte.
    pub start: NonNull<u8>,
    layout: Layout,
}

impl Region {
    /// `None` without memory.
    pub fn new(mebibytes: usize) -> Option<Self> {
        let layout = Layout::from_size_align(mebibytes * MEBIBYTE, 4096).ok()?;
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc(layout) })?;
        Some(Self { start, layout })
    }

    /// From where to where it goes.
    pub fn addresses(&self) -> Range<usize> {
        let start = self.start.as_ptr().expose_provenance();
        start..start + self.bytes()
    }

    /// Its length in bytes.
    pub fn bytes(&self) -> usize {
        self.layout.size()
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this layout.
        unsafe { dealloc(self.start.as_ptr(), self.layout) };
    }
}

/// Brings a slice into any order, the same in every run.
pub fn shuffle<T>(random: &Random, slice: &mut [T]) {
    for index in (1..slice.len()).rev() {
        slice.swap(index, random.below(index + 1));
    }
}
