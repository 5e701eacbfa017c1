//! Using up the heap, for tests of what happens then.

use alloc::alloc::{Layout, alloc, dealloc};
use alloc::vec::Vec;
use core::ptr::NonNull;

use crate::Failure;

/// So many blocks are all that is left, if the largest are taken first.
const MOST_BLOCKS: usize = 100_000;

/// Memory taken from the heap until it is dropped.
pub struct HeapExhauster {
    blocks: Vec<(NonNull<u8>, Layout)>,
}

// SAFETY: the blocks are this value's own; which core frees them makes no difference to the heap.
unsafe impl Send for HeapExhauster {}

impl HeapExhauster {
    /// Takes whatever is left, in ever smaller blocks down to `least_bytes`.
    ///
    /// # Errors
    /// When that is more blocks than are counted on.
    pub fn everything(least_bytes: usize) -> Result<Self, Failure> {
        // The list itself must not need memory at the end.
        let mut exhauster = Self { blocks: Vec::with_capacity(MOST_BLOCKS) };
        exhauster.take_more(least_bytes)?;
        Ok(exhauster)
    }

    /// Takes what has come since, too: a core that falls asleep leaves its free blocks to all.
    ///
    /// # Errors
    /// As [`Self::everything`].
    pub fn take_more(&mut self, least_bytes: usize) -> Result<(), Failure> {
        let blocks = &mut self.blocks;
        let mut bytes = 1 << 30;
        while bytes >= least_bytes && blocks.len() < MOST_BLOCKS {
            let Ok(layout) = Layout::from_size_align(bytes, 16) else { break };
            // SAFETY: the size is not zero.
            match NonNull::new(unsafe { alloc(layout) }) {
                Some(block) => blocks.push((block, layout)),
                // Small ones are kept by size, 16 bytes apart: there is memory as long as one size has a block.
                None if bytes > 2048 => bytes /= 2,
                None => bytes -= 16,
            }
        }
        if blocks.len() >= MOST_BLOCKS {
            return Err("the heap has more blocks than a test can hold".into());
        }
        Ok(())
    }
}

impl Drop for HeapExhauster {
    fn drop(&mut self) {
        for (block, layout) in self.blocks.drain(..) {
            // SAFETY: allocated above with this layout.
            unsafe { dealloc(block.as_ptr(), layout) };
        }
    }
}
