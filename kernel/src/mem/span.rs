//! Spans: pieces of one length that the central heap gives, each cut into blocks of one size class.
//!
//! A span counts its blocks that are handed out. When the last one comes back, the span returns to the central heap, so
//! that other sizes can use its memory. Its header is at its beginning. Blocks are cut off in order as they are needed,
//! so that no step takes longer than what it asks for.
//!
//! This file knows the spans of one class; its lock is the depot's. Which span a block belongs to is in the
//! [table](super::span_table).

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use super::block::List;
use super::limit::LEAST_CHARGED_BYTES;
use super::size_class::SizeClass;
use super::span_table::UNIT_BYTES;

/// Bytes of a span, header included. A longer one would be held back longer by a block that stays; a shorter one would
/// waste more behind its last block.
pub(super) const SPAN_BYTES: usize = 32 * 1024;

/// The layout of a span.
pub(super) const SPAN_LAYOUT: Layout = match Layout::from_size_align(SPAN_BYTES, UNIT_BYTES) {
    Ok(layout) => layout,
    Err(_) => panic!("a span's layout"),
};

/// The header of a span.
#[repr(C, align(16))]
pub(super) struct Span {
    /// Neighbours in the list of those with free blocks; meaningless while it has none.
    next: *mut Span,
    previous: *mut Span,
    /// Blocks that came back.
    free: List,
    /// Blocks handed out.
    out: u32,
    /// Blocks cut off so far.
    cut: u32,
    /// Blocks that fit.
    capacity: u32,
    /// Where the first block is.
    first: u16,
    class: SizeClass,
}

const _: () = assert!(size_of::<Span>() == 48);

impl Span {
    /// Makes a span of fresh memory.
    ///
    /// # Safety
    /// `memory` is of the span's layout and nobody else's.
    unsafe fn write(memory: NonNull<u8>, class: SizeClass) -> NonNull<Self> {
        let span = memory.cast::<Self>();
        let start = memory.as_ptr().addr();
        let first = (start + size_of::<Self>()).next_multiple_of(class.block_layout().align()) - start;
        // Behind short blocks there is room, so that what lies behind the span does not begin in the 64 bytes in which one of them does
        // (`limit/owners.rs`).
        let room = LEAST_CHARGED_BYTES.saturating_sub(class.block_bytes());
        let capacity = (SPAN_BYTES - first - room) / class.block_bytes();
        // SAFETY: by contract, and a span is longer than its header.
        unsafe {
            span.write(Self {
                next: ptr::null_mut(),
                previous: ptr::null_mut(),
                free: List::EMPTY,
                out: 0,
                cut: 0,
                capacity: capacity as u32,
                first: first as u16,
                class,
            });
        }
        span
    }

    /// Calls for each block that was ever cut off.
    ///
    /// # Safety
    /// The class's lock is held, or nobody else uses the heap.
    pub(super) unsafe fn for_each_block(span: NonNull<Self>, mut tell: impl FnMut(usize, usize)) {
        // SAFETY: by contract it is alive, and nobody changes it.
        let header = unsafe { span.as_ref() };
        let (start, bytes) = (span.as_ptr().addr() + usize::from(header.first), header.class.block_bytes());
        (0..header.cut as usize).for_each(|index| tell(start + index * bytes, bytes));
    }

    /// The start of the block that an address in the span is in, and its class; none in the header, and where nothing
    /// was cut off yet.
    ///
    /// # Safety
    /// As for [`Self::for_each_block`].
    pub(super) unsafe fn block_at(span: NonNull<Self>, address: usize) -> Option<(usize, SizeClass)> {
        // SAFETY: by contract it is alive, and nobody changes it.
        let header = unsafe { span.as_ref() };
        let first = span.as_ptr().addr() + usize::from(header.first);
        let bytes = header.class.block_bytes();
        let index = address.checked_sub(first)? / bytes;
        (index < header.cut as usize).then_some((first + index * bytes, header.class))
    }

    /// Its free blocks.
    ///
    /// # Safety
    /// As for [`Self::for_each_block`].
    pub(super) unsafe fn free_blocks(span: NonNull<Self>) -> (List, SizeClass) {
        // SAFETY: by contract it is alive, and nobody changes it.
        let header = unsafe { span.as_ref() };
        (header.free, header.class)
    }

    fn is_full(&self) -> bool {
        self.out == self.capacity
    }

    /// Moves blocks to the list until it has so many, or the span has none left.
    ///
    /// # Safety
    /// `span` is the pointer to it that also reaches its blocks; it is of this class, and so is the list.
    unsafe fn take(span: NonNull<Self>, class: SizeClass, list: &mut List, count: usize) {
        // SAFETY: by contract it is alive, and the class's lock makes this the only reference.
        let header = unsafe { &mut *span.as_ptr() };
        let before = list.count;
        while list.count < count
            && let Some(block) = header.free.pop()
        {
            // SAFETY: a free block of the class.
            unsafe { list.push(block) };
        }
        // What is cut off is in order of its addresses in the list.
        let fresh = (count - list.count).min((header.capacity - header.cut) as usize);
        let start = header.first as usize + header.cut as usize * class.block_bytes();
        for index in (0..fresh).rev() {
            // SAFETY: as many blocks fit behind the first as the capacity says, and these were never handed out.
            unsafe { list.push(span.cast::<u8>().add(start + index * class.block_bytes())) };
        }
        header.cut += fresh as u32;
        header.out += (list.count - before) as u32;
    }
}

/// The spans of one class that have free blocks. The full ones are in no list: their blocks lead to them.
pub(super) struct Spans {
    first: *mut Span,
}

impl Spans {
    pub(super) const EMPTY: Self = Self { first: ptr::null_mut() };

    /// Adds a span of fresh memory, and returns it.
    ///
    /// # Safety
    /// `memory` is of a span's layout and nobody else's.
    pub(super) unsafe fn add(&mut self, memory: NonNull<u8>, class: SizeClass) -> NonNull<Span> {
        // SAFETY: the caller promised memory of a span's layout.
        let span = unsafe { Span::write(memory, class) };
        self.link(span);
        span
    }

    /// Moves free blocks to the list until it has so many, or there is none left.
    pub(super) fn take(&mut self, class: SizeClass, list: &mut List, count: usize) {
        while list.count < count {
            let Some(span) = NonNull::new(self.first) else { return };
            // SAFETY: the spans in the list are alive, of this class, and this structure's.
            unsafe { Span::take(span, class, list, count) };
            // SAFETY: as above.
            if unsafe { span.as_ref() }.is_full() {
                self.unlink(span);
            }
        }
    }

    /// Takes a block back. Whether it was the span's last: then the span is in no list any more, and its memory the
    /// caller's.
    ///
    /// # Safety
    /// The block was taken from this span, which is of this class, and nobody uses it any more.
    pub(super) unsafe fn give(&mut self, span: NonNull<Span>, block: NonNull<u8>) -> bool {
        // SAFETY: by contract it is alive, and the class's lock makes this the only reference.
        let header = unsafe { &mut *span.as_ptr() };
        let was_full = header.is_full();
        // SAFETY: the caller promised a block of this span that nobody uses any more.
        unsafe { header.free.push(block) };
        header.out -= 1;
        let is_empty = header.out == 0;
        match (was_full, is_empty) {
            // First: a span with one free block is used before those with more, which may become empty.
            (true, false) => self.link(span),
            (false, true) => self.unlink(span),
            (true, true) | (false, false) => {}
        }
        is_empty
    }

    fn link(&mut self, span: NonNull<Span>) {
        // SAFETY: both are alive and this structure's; no other reference to them is in use.
        unsafe {
            (*span.as_ptr()).next = self.first;
            (*span.as_ptr()).previous = ptr::null_mut();
            if let Some(first) = self.first.as_mut() {
                first.previous = span.as_ptr();
            }
        }
        self.first = span.as_ptr();
    }

    fn unlink(&mut self, span: NonNull<Span>) {
        // SAFETY: it is in the list; the spans in it are alive and this structure's.
        unsafe {
            let (next, previous) = ((*span.as_ptr()).next, (*span.as_ptr()).previous);
            match previous.as_mut() {
                Some(previous) => previous.next = next,
                None => self.first = next,
            }
            if let Some(next) = next.as_mut() {
                next.previous = previous;
            }
        }
    }
}
