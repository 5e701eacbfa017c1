//! What all cores share of one size class: batches that wait for a core, and behind them the spans.
//!
//! A batch goes from core to core as it is, in constant time, while there are not too many. Any beyond that number are
//! taken apart: each block goes back to its span, and a span that has all of its blocks again goes back to the central
//! heap. When memory is short all batches are taken apart. So a block pays for the way to its span and back only if
//! nobody needed it for long.

use core::ptr::{self, NonNull};

use super::block::{Block, List};
use super::size_class::SizeClass;
use super::span::Spans;
use super::span_table::SpanTable;
use crate::sync::SpinLock;

/// At most this many batches of each class wait.
const MOST_BATCHES: usize = 1024;

/// Where spans come from and go to. It may take a lock, but not a depot's.
pub(super) trait Source {
    /// Memory of a span's layout.
    fn take(&self) -> Option<NonNull<u8>>;
    /// # Safety
    /// The memory came from [`Self::take`], and nobody uses it any more.
    unsafe fn give(&self, memory: NonNull<u8>);
    /// A block that is not cut from a span.
    fn take_alone(&self, class: SizeClass) -> Option<NonNull<u8>>;
    /// # Safety
    /// The block came from [`Self::take_alone`] with this class, and nobody uses it any more.
    unsafe fn give_alone(&self, block: NonNull<u8>, class: SizeClass);
    fn table(&self) -> &SpanTable;
}

/// One class's depot.
pub(super) struct Depot<'a> {
    class: SizeClass,
    inner: &'a SpinLock<Inner>,
}

/// What a depot has. It does not say of which class: its initial state is all zeros, so that the image need not contain
/// it.
pub(super) struct Stock(SpinLock<Inner>);

struct Inner {
    /// Linked through their first blocks.
    batches: *mut Block,
    batch_count: usize,
    spans: Spans,
}

// SAFETY: free blocks, and spans, may be used from any core.
unsafe impl Send for Inner {}

impl Stock {
    pub(super) const fn empty() -> Self {
        Self(SpinLock::new(Inner { batches: ptr::null_mut(), batch_count: 0, spans: Spans::EMPTY }))
    }

    /// The depot of the class that it is kept for.
    pub(super) fn of(&self, class: SizeClass) -> Depot<'_> {
        Depot { class, inner: &self.0 }
    }
}

impl Depot<'_> {
    /// Up to `most` blocks, which is a batch or fewer; none without memory.
    pub(super) fn take(&self, most: usize, source: &impl Source) -> List {
        let list = self.inner.lock().take(self.class, most);
        if list.count != 0 {
            return list;
        }
        let Some(memory) = source.take() else { return List::EMPTY };
        let mut inner = self.inner.lock();
        // SAFETY: fresh memory of a span's layout.
        source.table().insert(unsafe { inner.spans.add(memory, self.class) });
        inner.take(self.class, most)
    }

    /// Takes a batch.
    ///
    /// # Safety
    /// `list` is a batch of free blocks of the class, and nobody else's.
    #[cold]
    #[inline(never)]
    pub(super) unsafe fn put(&self, list: List, source: &impl Source) {
        let mut inner = self.inner.lock();
        if inner.batch_count < MOST_BATCHES {
            // SAFETY: a batch is not empty, and its blocks are free.
            unsafe { (*list.head).next_batch = inner.batches };
            inner.batches = list.head;
            inner.batch_count += 1;
        } else {
            // SAFETY: the caller promised free blocks of the class, and nobody else's.
            unsafe { inner.take_apart(self.class, list, source) };
        }
    }

    /// Takes any number of blocks, which go back to their spans at once.
    ///
    /// # Safety
    /// They are free blocks of the class, and nobody else's.
    pub(super) unsafe fn put_apart(&self, list: List, source: &impl Source) {
        // SAFETY: the caller promised free blocks of the class, and nobody else's.
        unsafe { self.inner.lock().take_apart(self.class, list, source) };
    }

    /// Calls for each block that waits.
    pub(super) fn for_each_waiting(&self, mut tell: impl FnMut(usize)) {
        let inner = self.inner.lock();
        let mut batch = inner.batches;
        while !batch.is_null() {
            // SAFETY: batches in the depot are free blocks, and whole batches; the lock is held.
            unsafe {
                List { head: batch, count: self.class.batch() }.for_each(&mut tell);
                batch = (*batch).next_batch;
            }
        }
    }

    /// Takes the batches apart that wait. The lock is free between one and the next.
    pub(super) fn take_batches_apart(&self, source: &impl Source) {
        // Bounded, because other cores may bring more meanwhile.
        for _ in 0..MOST_BATCHES {
            let mut inner = self.inner.lock();
            let Some(batch) = inner.take_batch(self.class) else { return };
            // SAFETY: it was in the depot, and is nobody else's now.
            unsafe { inner.take_apart(self.class, batch, source) };
        }
    }
}

impl Inner {
    fn take_batch(&mut self, class: SizeClass) -> Option<List> {
        let head = NonNull::new(self.batches)?;
        // SAFETY: batches in the depot are free blocks.
        self.batches = unsafe { head.as_ref() }.next_batch;
        self.batch_count -= 1;
        Some(List { head: head.as_ptr(), count: class.batch() })
    }

    fn take(&mut self, class: SizeClass, most: usize) -> List {
        if most == class.batch()
            && let Some(batch) = self.take_batch(class)
        {
            return batch;
        }
        let mut list = List::EMPTY;
        self.spans.take(class, &mut list, most);
        list
    }

    /// # Safety
    /// The list's blocks are free, of the class, and nobody else's.
    unsafe fn take_apart(&mut self, class: SizeClass, mut list: List, source: &impl Source) {
        while let Some(block) = list.pop() {
            match source.table().find(block) {
                Some(span) => {
                    // SAFETY: the table says that it was cut from this span; by contract it is of this class.
                    if unsafe { self.spans.give(span, block) } {
                        source.table().remove(span);
                        // SAFETY: all of its blocks are back, and no list has it any more.
                        unsafe { source.give(span.cast()) };
                    }
                }
                // SAFETY: what is not of a span was taken as one block when memory was short.
                None => unsafe { source.give_alone(block, class) },
            }
        }
    }
}
