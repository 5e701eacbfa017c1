//! The heap: small blocks from each core's cache, everything else from the central heap behind a lock.
//!
//! Blocks of one size class are cut from spans, which come from the central heap and go back to it. When it has no room,
//! what waits in this core's cache, in the depots and in the caches of sleeping cores is taken apart, so that spans return;
//! meanwhile it is asked again.

use core::alloc::{GlobalAlloc, Layout};
use core::ops::Range;
use core::ptr::{self, NonNull};

use super::cache::{Caches, LentCache};
use super::central::Central;
use super::depot::Source;
use super::large_table::{GRANULE_BYTES, LargeTable};
use super::limit::Owners;
use super::orphans;
use super::size_class::SizeClass;
use super::span::{SPAN_BYTES, SPAN_LAYOUT};
use super::span_table::{SpanTable, UNIT_BYTES};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::{MAX_CORES, pair, percpu, zero};
use crate::sync::{PreemptGuard, SpinLock, account_here};

/// The kernel's allocator.
pub struct Heap {
    central: SpinLock<Central>,
    pub(super) caches: Caches,
    pub(super) table: SpanTable,
    pub(super) large: LargeTable,
    /// Marks for the collector of what crashes leave behind.
    pub(super) marked: orphans::Memory,
    /// Who pays for which block.
    pub(super) owners: Owners,
    /// Bytes of the central heap that are spans, or blocks alone.
    cut_bytes: AtomicU64,
    /// Blocks that came from the central heap, not counting those that were cut.
    large_allocations: AtomicU64,
}

impl Heap {
    /// A heap without memory.
    pub const fn empty() -> Self {
        Self {
            central: SpinLock::new(Central::empty()),
            caches: Caches::new(),
            table: SpanTable::empty(),
            large: LargeTable::empty(),
            marked: orphans::Memory::empty(),
            owners: Owners::empty(),
            cut_bytes: AtomicU64::new(0),
            large_allocations: AtomicU64::new(0),
        }
    }

    /// Gives it its memory, in one part or several. Its tables are as long as if what lies between the parts were
    /// memory, too: about a byte for every 55. They lie in the largest part; without room for them there it stays
    /// without memory.
    ///
    /// # Safety
    /// The parts do not overlap and are used for nothing else, and this is called once.
    pub unsafe fn init(&self, parts: &[Range<usize>]) {
        let aligned = |part: &Range<usize>| part.start.next_multiple_of(UNIT_BYTES)..part.end;
        let Some(largest) = parts.iter().map(aligned).max_by_key(Range::len) else { return };
        let begin = parts.iter().map(aligned).map(|part| part.start).min().unwrap_or(largest.start);
        let length = parts.iter().map(|part| part.end).max().unwrap_or(begin).saturating_sub(begin);
        let at = |address| NonNull::new(ptr::with_exposed_provenance_mut::<u8>(address));
        let layouts = SpanTable::layout(length).zip(LargeTable::layout(length));
        let (Some(memory), Some((spans, large))) = (at(largest.start), layouts) else { return };
        let spans_bytes = spans.size().next_multiple_of(UNIT_BYTES);
        let tables_bytes = spans_bytes + large.size().next_multiple_of(UNIT_BYTES);
        let marks_bytes = orphans::Memory::bytes_for(length).next_multiple_of(UNIT_BYTES);
        let Some(rest) = largest.len().checked_sub(tables_bytes + marks_bytes) else { return };
        self.owners.init(begin, length);
        // SAFETY: by contract the parts are ours; the tables and the rest of the largest do not overlap.
        unsafe {
            self.table.init(memory, begin, length);
            self.large.init(memory.add(spans_bytes), begin, length);
            self.marked.init(memory.add(tables_bytes), begin, length);
            let mut central = self.central.lock();
            central.add(memory.add(tables_bytes + marks_bytes), rest);
            for part in parts.iter().map(aligned).filter(|part| part.start != largest.start) {
                if let Some(memory) = at(part.start) {
                    central.add(memory, part.len());
                }
            }
        }
    }

    /// Bytes in use, and bytes free that blocks of any size can be made of; roughly, while others allocate. What is
    /// neither is [kept](Self::kept).
    pub fn usage(&self) -> (usize, usize) {
        let central = self.central.lock();
        let used = central.used().saturating_sub(self.kept());
        (used, central.free())
    }

    /// Bytes that only small blocks of some sizes can have for now: free ones that wait in the cores' caches and the
    /// depots, or whose neighbours are in use. Some of it is free again when memory gets short.
    pub fn kept(&self) -> usize {
        // Relaxed: a statistic.
        (self.cut_bytes.load(Ordering::Relaxed) as usize).saturating_sub(self.caches.in_use_bytes() as usize)
    }

    /// How many blocks have ever been handed out. What it grows by between two moments is what the code in
    /// between has allocated.
    pub fn allocations(&self) -> u64 {
        // Relaxed: a statistic.
        self.caches.allocations() + self.large_allocations.load(Ordering::Relaxed)
    }

    /// Memory of the central heap that is no block.
    pub(super) fn allocate_central(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.central.lock().allocate(layout)
    }

    /// A block that the table of large blocks has, with this many bytes.
    fn take_noted(&self, layout: Layout, bytes: usize) -> Option<NonNull<u8>> {
        let mut central = self.central.lock();
        let block = central.allocate(noted(layout))?;
        self.large.insert(block, bytes);
        Some(block)
    }

    /// Out of line, as the functions below.
    ///
    /// # Safety
    /// The block came from [`Self::take_noted`] with this layout, and nobody uses it any more.
    #[inline(never)]
    pub(super) unsafe fn give_noted(&self, block: NonNull<u8>, layout: Layout) {
        let mut central = self.central.lock();
        self.large.remove(block);
        // SAFETY: the caller promised a noted block with this layout that nobody uses any more.
        unsafe { central.deallocate(block, noted(layout)) };
    }

    /// Out of line, like the functions below, because the path to a small block in the cache needs none of their
    /// registers.
    #[inline(never)]
    fn take_large(&self, layout: Layout) -> *mut u8 {
        let attempt = || self.take_noted(layout, noted(layout).size());
        let block = attempt().or_else(|| self.give_up_kept_until(attempt));
        // Relaxed: a statistic.
        self.large_allocations.fetch_add(u64::from(block.is_some()), Ordering::Relaxed);
        block.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// A small block when the core has none at hand.
    #[cold]
    #[inline(never)]
    fn take_small(&self, class: SizeClass, asked: usize) -> *mut u8 {
        let attempt = || {
            let here = PreemptGuard::new();
            self.caches.allocate(class, core_here(&here), &here, self)
        };
        // What follows the first may take long.
        let block = attempt().or_else(|| self.give_up_kept_until(attempt));
        let block = block.or_else(|| self.caches.allocate_alone(class, self));
        let Some(block) = block else { return ptr::null_mut() };
        // SAFETY: as in `alloc_unpaid`.
        unsafe { clear_rest(block, asked, class) };
        block.as_ptr()
    }

    /// Gives free blocks back to their spans until the attempt succeeds: class by class those of this core and the
    /// depots, then core by core those of sleeping cores. Cores that are awake soon give back their own, and if crashes
    /// have left something, it is looked for. The caller can be preempted between one batch and the next.
    pub(super) fn give_up_kept_until<T>(&self, attempt: impl Fn() -> Option<T>) -> Option<T> {
        self.caches.note_shortage();
        for class in SizeClass::ALL {
            let here = PreemptGuard::new();
            self.caches.empty_core(class, core_here(&here), &here, self);
            drop(here);
            self.caches.empty_depot(class, self);
            if let Some(had) = attempt() {
                return Some(had);
            }
        }
        let had = (0..MAX_CORES).find_map(|core| {
            for class in SizeClass::ALL {
                self.caches.empty_sleeper(class, core, &PreemptGuard::new(), self);
            }
            attempt()
        });
        if had.is_none() {
            orphans::want_if_any();
        }
        had
    }

    /// A block that nobody pays for; null without memory.
    #[inline(always)]
    pub(super) fn alloc_unpaid(&self, layout: Layout) -> *mut u8 {
        let Some(class) = SizeClass::of(layout) else { return self.take_large(layout) };
        let here = PreemptGuard::new();
        if let Some(block) = self.caches.allocate_at_hand(class, core_here(&here), &here) {
            // SAFETY: a block of this class, which nobody else uses.
            unsafe { clear_rest(block, layout.size(), class) };
            return block.as_ptr();
        }
        drop(here);
        self.take_small(class, layout.size())
    }

    /// Frees it.
    ///
    /// # Safety
    /// The contract of `dealloc`, for a block of [`Self::alloc_unpaid`].
    #[inline(always)]
    pub(super) unsafe fn free_unpaid(&self, block: NonNull<u8>, layout: Layout) {
        match SizeClass::of(layout) {
            Some(class) => {
                let here = PreemptGuard::new();
                // SAFETY: by contract the block has this layout, so this class.
                unsafe { self.caches.free(block, class, core_here(&here), &here, self) };
            }
            // SAFETY: by contract the block has this layout.
            None => unsafe { self.give_noted(block, layout) },
        }
    }

    /// How often memory was short, modulo 2^32. When that changes each core is to come to [`Self::answer_shortage`].
    #[inline(always)]
    pub(crate) fn shortages(&self) -> u32 {
        self.caches.shortages()
    }

    /// What a core does between two turns when memory was short. Returns whether there is more to do.
    pub(crate) fn answer_shortage(&self) -> bool {
        let here = PreemptGuard::new();
        self.caches.answer_shortage(core_here(&here), &here, self)
    }

    /// Others that are short of memory may take what this core keeps, until what this returns is dropped.
    ///
    /// # Safety
    /// The caller is a core's loop. Until then neither it nor an interrupt handler allocates or frees.
    #[inline(always)]
    pub(crate) unsafe fn lend_cache<'a>(&'a self, here: &'a PreemptGuard) -> LentCache<'a> {
        // SAFETY: by contract.
        unsafe { self.caches.lend(core_here(here), here) }
    }
}

impl Source for Heap {
    fn take(&self) -> Option<NonNull<u8>> {
        let memory = self.central.lock().allocate(SPAN_LAYOUT)?;
        // Relaxed, here and below: a statistic.
        self.cut_bytes.fetch_add(SPAN_BYTES as u64, Ordering::Relaxed);
        Some(memory)
    }

    unsafe fn give(&self, memory: NonNull<u8>) {
        // SAFETY: by contract.
        unsafe { self.central.lock().deallocate(memory, SPAN_LAYOUT) };
        self.cut_bytes.fetch_sub(SPAN_BYTES as u64, Ordering::Relaxed);
    }

    fn take_alone(&self, class: SizeClass) -> Option<NonNull<u8>> {
        let block = self.take_noted(class.block_layout(), class.block_bytes())?;
        self.cut_bytes.fetch_add(noted(class.block_layout()).size() as u64, Ordering::Relaxed);
        Some(block)
    }

    unsafe fn give_alone(&self, block: NonNull<u8>, class: SizeClass) {
        // SAFETY: by contract.
        unsafe { self.give_noted(block, class.block_layout()) };
        self.cut_bytes.fetch_sub(noted(class.block_layout()).size() as u64, Ordering::Relaxed);
    }

    fn table(&self) -> &SpanTable {
        &self.table
    }
}

/// The layout for the central heap of what the table of large blocks has: longer than a granule, also where only the
/// alignment is large, or where a small block is not cut from a span.
pub(super) fn noted(layout: Layout) -> Layout {
    // SAFETY: the alignment is valid, and a size of a granule does not overflow when rounded up to it, or the layout is
    // as it was.
    unsafe { Layout::from_size_align_unchecked(layout.size().max(GRANULE_BYTES + 1), layout.align()) }
}

/// Overwrites what lies in a block behind what was asked for, which its owner never writes to: to a collection, what others have
/// left there would seem to be pointers, and as many as there are blocks.
///
/// # Safety
/// The block is of this class, and nobody uses it.
#[inline(always)]
unsafe fn clear_rest(block: NonNull<u8>, asked: usize, class: SizeClass) {
    const PAIR_BYTES: usize = size_of::<[u64; 2]>();
    let mut at = asked / PAIR_BYTES * PAIR_BYTES;
    // Hardly ever more than once: of so few the compiler is to make no call, nor to count them first.
    while at < class.block_bytes() {
        // SAFETY: blocks are aligned to a pair of words, and so many bytes long, by contract the caller's.
        unsafe { pair::zero(block.add(at)) };
        at += PAIR_BYTES;
    }
}

/// The core whose cache may be used, if its scheduler runs.
#[inline(always)]
pub(super) fn core_here(_here: &PreemptGuard) -> Option<usize> {
    percpu::core_number_if_any()
}

// SAFETY: the central heap returns blocks that fit the layout and do not overlap, with the lock making it one caller at
// a time; spans cut such blocks into smaller ones, aligned as their class says.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        #[cfg(feature = "checks")]
        if super::refusal::is_due() {
            return ptr::null_mut();
        }
        match account_here() as u8 {
            0 => self.alloc_unpaid(layout),
            number => self.alloc_charged(layout, number),
        }
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(block) = NonNull::new(block) else { return };
        // SAFETY: by contract the block came from `alloc` with this layout, and is the caller's.
        unsafe {
            if let Some(table) = self.owners.table() {
                let number = table.get(block.as_ptr().addr());
                if number != 0 {
                    return self.free_charged(block, layout, table, number);
                }
            }
            self.free_unpaid(block, layout);
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: by contract; what was allocated has room for so many, is the heap's, so ordinary memory, and nobody else's.
        unsafe {
            let block = self.alloc(layout);
            if let Some(first) = NonNull::new(block) {
                zero::fill(first, layout.size(), || 0_u8);
            }
            block
        }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: by contract the size is valid for the alignment.
        let wanted = unsafe { Layout::from_size_align_unchecked(size, layout.align()) };
        if let (Some(old), Some(new)) = (SizeClass::of(layout), SizeClass::of(wanted))
            && old == new
        {
            return block;
        }
        // SAFETY: by contract; both blocks have room for the smaller size and do not overlap.
        unsafe {
            let new = self.alloc(wanted);
            if !new.is_null() {
                ptr::copy_nonoverlapping(block, new, layout.size().min(size));
                self.dealloc(block, layout);
            }
            new
        }
    }
}

/// The heap of the machine.
#[cfg_attr(target_os = "none", global_allocator)]
pub static HEAP: Heap = Heap::empty();

#[cfg(test)]
pub(super) use tests::{Region, TestHeap, layout};

#[cfg(test)]
mod tests;
