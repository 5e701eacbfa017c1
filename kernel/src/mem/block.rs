//! Free blocks, and lists of them. The links are in the blocks: the smallest has room for two.

use core::ptr::{self, NonNull};

/// A free block.
pub(super) struct Block {
    pub(super) next: *mut Block,
    /// In the first block of a batch that is in the depot: the next batch.
    pub(super) next_batch: *mut Block,
}

/// A list of free blocks of one class.
#[derive(Clone, Copy)]
pub(super) struct List {
    pub(super) head: *mut Block,
    pub(super) count: usize,
}

impl List {
    pub(super) const EMPTY: Self = Self { head: ptr::null_mut(), count: 0 };

    /// Calls for each block.
    ///
    /// # Safety
    /// Nobody changes the list meanwhile.
    pub(super) unsafe fn for_each(&self, mut tell: impl FnMut(usize)) {
        let mut block = self.head;
        for _ in 0..self.count {
            tell(block.addr());
            // SAFETY: the list has so many blocks; they are free, so their first words are the list's.
            block = unsafe { (*block).next };
        }
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.head)?;
        // SAFETY: blocks on a list are free, so their first words are the list's.
        self.head = unsafe { block.as_ref() }.next;
        self.count -= 1;
        Some(block.cast())
    }

    /// # Safety
    /// `block` is a free block of the list's class, aligned to 16 bytes, and nobody else's.
    #[inline(always)]
    pub(super) unsafe fn push(&mut self, block: NonNull<u8>) {
        let block = block.cast::<Block>();
        // SAFETY: by contract; the smallest block has room for the links.
        unsafe { block.write(Block { next: self.head, next_batch: ptr::null_mut() }) };
        self.head = block.as_ptr();
        self.count += 1;
    }
}
