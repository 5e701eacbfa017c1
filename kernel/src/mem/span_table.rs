//! Which span an address is in.
//!
//! The heap's memory is looked at in slots of a span's length. Spans begin anywhere, so at most one begins in each
//! slot, and what a slot holds belongs to that one or to the one that begins in the slot before. Two bytes for each
//! slot say where. That is all the memory that the table takes, at the beginning of the heap.
//!
//! The table is read and written without a lock. Whoever asks has a block in hand. If the block is of a span, that
//! span's entry was written before the block was handed out, and stays until the block is back. Neighbouring entries
//! may change meanwhile, but neither the old nor the new ones are of spans that hold the block.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use super::reserved::Reserved;
use super::span::{SPAN_BYTES, Span};
use crate::arch::atomic::{AtomicU16, AtomicUsize, Ordering};

/// What spans are aligned to, and what the entries count in.
pub(super) const UNIT_BYTES: usize = 32;

const _: () = assert!(SPAN_BYTES / UNIT_BYTES < u16::MAX as usize);

/// The table.
pub(super) struct SpanTable {
    /// Address of the first slot; a multiple of the unit.
    base: AtomicUsize,
    /// For each slot one more than the units before the span that begins in it, or zero.
    entries: Reserved<AtomicU16>,
}

impl SpanTable {
    pub(super) const fn empty() -> Self {
        Self { base: AtomicUsize::new(0), entries: Reserved::empty() }
    }

    fn slots(length_bytes: usize) -> usize {
        length_bytes / SPAN_BYTES + 1
    }

    /// The memory that the table for this many bytes takes.
    pub(super) fn layout(length_bytes: usize) -> Option<Layout> {
        Layout::array::<AtomicU16>(Self::slots(length_bytes)).ok()?.align_to(UNIT_BYTES).ok()
    }

    /// Makes the table for the memory at `base`, which is a multiple of the unit.
    ///
    /// # Safety
    /// `entries` has [`Self::layout`] and is used for nothing else. Called once, before anything else.
    pub(super) unsafe fn init(&self, entries: NonNull<u8>, base: usize, length_bytes: usize) {
        // Relaxed, here and below: as in `Reserved`.
        self.base.store(base, Ordering::Relaxed);
        // SAFETY: the caller promised memory of the layout, used for nothing else.
        unsafe { self.entries.init(entries, Self::slots(length_bytes), || AtomicU16::new(0)) };
    }

    fn place(&self, address: usize) -> (usize, usize) {
        let offset = address.wrapping_sub(self.base.load(Ordering::Relaxed));
        (offset / SPAN_BYTES, offset % SPAN_BYTES)
    }

    /// Notes that a span begins there.
    pub(super) fn insert(&self, span: NonNull<Span>) {
        let (slot, offset) = self.place(span.as_ptr().expose_provenance());
        if let Some(entry) = self.entries.get(slot) {
            // Relaxed: the lock of the span's class, and whatever hands its blocks on, order this before a question
            // about them.
            entry.store((offset / UNIT_BYTES + 1) as u16, Ordering::Relaxed);
        }
    }

    /// Forgets the span that begins there.
    pub(super) fn remove(&self, span: NonNull<Span>) {
        let (slot, _) = self.place(span.as_ptr().addr());
        if let Some(entry) = self.entries.get(slot) {
            // Relaxed: the central heap's lock orders this before another span begins in this slot.
            entry.store(0, Ordering::Relaxed);
        }
    }

    /// Calls for each span, while none comes or goes.
    pub(super) fn for_each(&self, mut tell: impl FnMut(NonNull<Span>)) {
        let base = self.base.load(Ordering::Relaxed);
        for (slot, entry) in self.entries.all().iter().enumerate() {
            // Relaxed: whoever has the heap for itself has seen all entries.
            let place = usize::from(entry.load(Ordering::Relaxed));
            if place != 0 {
                tell(span_at(base + slot * SPAN_BYTES + (place - 1) * UNIT_BYTES));
            }
        }
    }

    /// The span that the block was cut from, if it was cut from one.
    pub(super) fn find(&self, block: NonNull<u8>) -> Option<NonNull<Span>> {
        self.find_at(block.as_ptr().addr())
    }

    /// The span that the address is in.
    pub(super) fn find_at(&self, address: usize) -> Option<NonNull<Span>> {
        let (slot, offset) = self.place(address);
        // Relaxed: see `insert`.
        let begins_at =
            |slot| self.entries.get(slot).map_or(0, |entry| usize::from(entry.load(Ordering::Relaxed)));
        let base = self.base.load(Ordering::Relaxed);
        let here = begins_at(slot);
        if here != 0 && (here - 1) * UNIT_BYTES <= offset {
            return Some(span_at(base + slot * SPAN_BYTES + (here - 1) * UNIT_BYTES));
        }
        let slot = slot.checked_sub(1)?;
        let before = begins_at(slot);
        (before != 0 && (before - 1) * UNIT_BYTES > offset)
            .then(|| span_at(base + slot * SPAN_BYTES + (before - 1) * UNIT_BYTES))
    }
}

fn span_at(address: usize) -> NonNull<Span> {
    // SAFETY: a span's address is not null.
    unsafe { NonNull::new_unchecked(ptr::with_exposed_provenance_mut(address)) }
}
