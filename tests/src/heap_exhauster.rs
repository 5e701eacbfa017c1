//! Using up the heap, for tests of what happens then.

use alloc::alloc::{Layout, alloc, dealloc};
use core::ptr::NonNull;

/// Memory taken from the heap until it is dropped.
pub struct HeapExhauster {
    /// The block that was taken last.
    last: Option<NonNull<Block>>,
}

/// What is written at the beginning of each block: a list elsewhere would need much memory in one piece before there is none.
struct Block {
    before: Option<NonNull<Block>>,
    bytes: usize,
}

const ALIGNMENT: usize = 16;
const _: () = assert!(size_of::<Block>() <= ALIGNMENT);

// SAFETY: the blocks are this value's own; which core frees them makes no difference to the heap.
unsafe impl Send for HeapExhauster {}

impl HeapExhauster {
    /// Takes whatever is left, in ever smaller blocks down to `least_bytes`, or to 16.
    pub fn everything(least_bytes: usize) -> Self {
        let mut exhauster = Self { last: None };
        exhauster.take_more(least_bytes);
        exhauster
    }

    /// Takes what has come since, too: a core that falls asleep leaves its free blocks to all.
    pub fn take_more(&mut self, least_bytes: usize) {
        let mut bytes = 1 << 30;
        while bytes >= least_bytes.max(ALIGNMENT) {
            let Ok(layout) = Layout::from_size_align(bytes, ALIGNMENT) else { break };
            // SAFETY: the size is not zero.
            match NonNull::new(unsafe { alloc(layout) }.cast::<Block>()) {
                Some(block) => {
                    // SAFETY: it is new, and has room for that.
                    unsafe { block.write(Block { before: self.last, bytes }) };
                    self.last = Some(block);
                }
                // Small ones are kept by size, 16 bytes apart: there is memory as long as one size has a block.
                None if bytes > 2048 => bytes /= 2,
                None => bytes -= ALIGNMENT,
            }
        }
    }
}

impl Drop for HeapExhauster {
    fn drop(&mut self) {
        while let Some(block) = self.last {
            // SAFETY: written when it was taken.
            let Block { before, bytes } = unsafe { block.read() };
            self.last = before;
            if let Ok(layout) = Layout::from_size_align(bytes, ALIGNMENT) {
                // SAFETY: allocated above with this layout.
                unsafe { dealloc(block.as_ptr().cast(), layout) };
            }
        }
    }
}
