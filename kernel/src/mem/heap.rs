//! The heap: `linked_list_allocator` behind a lock that disables preemption.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};

use linked_list_allocator::Heap as Central;

use crate::arch::atomic::{AtomicU64, Ordering};
use crate::sync::SpinLock;

/// The kernel's allocator.
pub struct Heap {
    central: SpinLock<Central>,
    /// Blocks ever asked for.
    allocations: AtomicU64,
}

impl Heap {
    /// A heap without memory.
    pub const fn empty() -> Self {
        Self { central: SpinLock::new(Central::empty()), allocations: AtomicU64::new(0) }
    }

    /// Gives it its memory.
    ///
    /// # Safety
    /// The region is used for nothing else, and this is called once.
    pub unsafe fn init(&self, start: usize, length_bytes: usize) {
        // SAFETY: by contract.
        unsafe { self.central.lock().init(ptr::with_exposed_provenance_mut(start), length_bytes) };
    }

    /// How many blocks were ever asked for, whoever got them: two readings tell what a piece of work cost.
    pub fn allocations(&self) -> u64 {
        // Relaxed: a statistic.
        self.allocations.load(Ordering::Relaxed)
    }

    /// Bytes in use and bytes free.
    pub fn usage(&self) -> (usize, usize) {
        let central = self.central.lock();
        (central.used(), central.free())
    }
}

// SAFETY: `linked_list_allocator` returns blocks that fit the layout and do not overlap; the lock makes it
// one caller at a time.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // Relaxed: a statistic.
        self.allocations.fetch_add(1, Ordering::Relaxed);
        self.central.lock().allocate_first_fit(layout).map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        if let Some(block) = NonNull::new(block) {
            // SAFETY: by contract the block came from `alloc` with this layout.
            unsafe { self.central.lock().deallocate(block, layout) };
        }
    }
}

/// The heap of the machine.
#[cfg_attr(target_os = "none", global_allocator)]
pub static HEAP: Heap = Heap::empty();
