//! The heap: small blocks from each core's cache, everything else from `linked_list_allocator` behind a lock.
//!
//! The list alone would be right but slow: it is sorted by address, so giving back one of many small blocks
//! walks past all holes before it, and every core would wait for the same lock.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};

use linked_list_allocator::Heap as Central;

use super::cache::Caches;
use super::size_class::SizeClass;
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::percpu;
use crate::sync::{PreemptGuard, SpinLock};

/// The kernel's allocator.
pub struct Heap {
    central: SpinLock<Central>,
    caches: Caches,
    /// Bytes of the central heap that were cut into small blocks.
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
            cut_bytes: AtomicU64::new(0),
            large_allocations: AtomicU64::new(0),
        }
    }

    /// Gives it its memory.
    ///
    /// # Safety
    /// The region is used for nothing else, and this is called once.
    pub unsafe fn init(&self, start: usize, length_bytes: usize) {
        // SAFETY: by contract.
        unsafe { self.central.lock().init(ptr::with_exposed_provenance_mut(start), length_bytes) };
    }

    /// Bytes in use and bytes free; roughly, while others allocate. Free blocks in the cores' caches count as
    /// free.
    pub fn usage(&self) -> (usize, usize) {
        let central = self.central.lock();
        // Relaxed: statistics.
        let cut = self.cut_bytes.load(Ordering::Relaxed) as usize;
        let used = (central.used() + self.caches.in_use_bytes() as usize).saturating_sub(cut);
        (used, (central.used() + central.free()).saturating_sub(used))
    }

    /// How many blocks have ever been handed out. What it grows by between two moments is what the code in
    /// between has allocated.
    pub fn allocations(&self) -> u64 {
        // Relaxed: a statistic.
        self.caches.allocations() + self.large_allocations.load(Ordering::Relaxed)
    }

    fn take_central(&self, layout: Layout) -> Option<NonNull<u8>> {
        self.central.lock().allocate_first_fit(layout).ok()
    }

    fn take_to_cut(&self, layout: Layout) -> Option<NonNull<u8>> {
        let memory = self.take_central(layout)?;
        // Relaxed: a statistic.
        self.cut_bytes.fetch_add(layout.size() as u64, Ordering::Relaxed);
        Some(memory)
    }
}

/// The core whose cache may be used, if its scheduler runs.
#[inline(always)]
fn core_here(_here: &PreemptGuard) -> Option<usize> {
    (!percpu::core_block().is_null()).then(percpu::core_number)
}

// SAFETY: `linked_list_allocator` returns blocks that fit the layout and do not overlap, with the lock making
// it one caller at a time; the caches cut such blocks into smaller ones, aligned as their class says.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let block = match SizeClass::of(layout) {
            Some(class) => {
                let here = PreemptGuard::new();
                self.caches.allocate(class, core_here(&here), &here, |layout| self.take_to_cut(layout))
            }
            None => {
                // Relaxed: a statistic.
                self.large_allocations.fetch_add(1, Ordering::Relaxed);
                self.take_central(layout)
            }
        };
        block.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(block) = NonNull::new(block) else { return };
        match SizeClass::of(layout) {
            Some(class) => {
                let here = PreemptGuard::new();
                // SAFETY: by contract the block came from `alloc` with this layout, so with this class.
                unsafe { self.caches.free(block, class, core_here(&here), &here) };
            }
            // SAFETY: by contract the block came from `alloc` with this layout.
            None => unsafe { self.central.lock().deallocate(block, layout) },
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
