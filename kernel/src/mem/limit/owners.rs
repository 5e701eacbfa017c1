//! Which account each block was charged to: a byte for every 64 bytes of the heap's memory, for the block that begins there. 0 is nobody.
//!
//! So it is known wherever a block is freed, by whomever, also when nothing is left of it but its address
//! ([`orphans`](crate::mem::orphans)). A block that somebody pays for has 64 bytes at least. Then no other block begins in its 64 bytes: in
//! a span all blocks are as long, and behind the last block of a span of shorter ones there is room (`span.rs`).
//!
//! The table is made when the first limit is. Until then a block that is freed costs a look at whether there is one.

use core::alloc::Layout;
use core::ptr::{self, NonNull};

use crate::arch::atomic::{AtomicPtr, AtomicU8, AtomicUsize, Ordering};
use crate::arch::zero;
use crate::sync::SpinLock;

const GRANULE_BITS: u32 = 6;
/// The shortest block that somebody can pay for.
pub(in crate::mem) const LEAST_BYTES: usize = 1 << GRANULE_BITS;
/// So much of the table is cleared at a time, under its lock.
const STEP_BYTES: usize = 64 * 1024;

/// The table.
pub(in crate::mem) struct Owners {
    /// Where the byte of address 0 would be; null without a table.
    first: AtomicPtr<AtomicU8>,
    base: AtomicUsize,
    bytes: AtomicUsize,
    making: SpinLock<Making>,
}

/// A table that is not in use yet. It is kept here, so that who is killed in the middle leaves it to the next.
struct Making {
    memory: Option<NonNull<u8>>,
    cleared: usize,
}

// SAFETY: the memory is nobody else's, on any core.
unsafe impl Send for Making {}

/// A table that is in use.
#[derive(Clone, Copy)]
pub(in crate::mem) struct Table(NonNull<AtomicU8>);

impl Table {
    fn byte(self, address: usize) -> &'static AtomicU8 {
        // SAFETY: callers have the address of a block of the heap, for all of which there are bytes, for ever.
        unsafe { &*self.0.as_ptr().wrapping_add(address >> GRANULE_BITS) }
    }

    /// Who pays for the block.
    ///
    /// # Safety
    /// `block` is one of the heap's, in use, and the caller's.
    #[inline(always)]
    pub(in crate::mem) unsafe fn get(self, block: usize) -> u8 {
        // Relaxed, here and below: who frees a block was handed it by who allocated it.
        self.byte(block).load(Ordering::Relaxed)
    }

    /// Says who pays for it.
    ///
    /// # Safety
    /// As for [`Self::get`]; it has [`LEAST_BYTES`], unless nobody does.
    pub(in crate::mem) unsafe fn set(self, block: usize, account: u8) {
        self.byte(block).store(account, Ordering::Relaxed);
    }
}

impl Owners {
    pub(in crate::mem) const fn empty() -> Self {
        Self {
            first: AtomicPtr::new(ptr::null_mut()),
            base: AtomicUsize::new(0),
            bytes: AtomicUsize::new(0),
            making: SpinLock::new(Making { memory: None, cleared: 0 }),
        }
    }

    /// Where the heap's memory lies. Called once, before anything else.
    pub(in crate::mem) fn init(&self, base: usize, bytes: usize) {
        // Relaxed, here and below: boot does this before there is another core, and starting that orders it.
        self.base.store(base, Ordering::Relaxed);
        self.bytes.store(bytes, Ordering::Relaxed);
    }

    /// Whether there is memory at all that somebody could pay for.
    pub(in crate::mem) fn is_needed(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) != 0
    }

    /// The table, if there is one.
    #[inline(always)]
    pub(in crate::mem) fn table(&self) -> Option<Table> {
        // Acquire: pairs with the release in `make`, so that the table is seen cleared.
        NonNull::new(self.first.load(Ordering::Acquire)).map(Table)
    }

    fn layout(&self) -> Option<Layout> {
        // One more, because neither end need be a multiple.
        let granules = (self.bytes.load(Ordering::Relaxed) >> GRANULE_BITS) + 2;
        Layout::from_size_align(granules, 16).ok()
    }

    /// Has memory for the table. `None` if `allocate` has none; else what it returned is used for ever.
    pub(in crate::mem) fn reserve(&self, allocate: impl FnOnce(Layout) -> Option<NonNull<u8>>) -> Option<()> {
        let mut making = self.making.lock();
        if making.memory.is_none() {
            making.memory = Some(allocate(self.layout()?)?);
        }
        Some(())
    }

    /// Clears what was reserved, step by step, and puts the table into use.
    pub(in crate::mem) fn make(&self) {
        while self.table().is_none() {
            let mut making = self.making.lock();
            let (Some(memory), Some(layout)) = (making.memory, self.layout()) else { return };
            let step = STEP_BYTES.min(layout.size() - making.cleared);
            // SAFETY: the memory has the layout, is ordinary memory of the heap's, and is not in use before all of it was cleared.
            unsafe { zero::fill(memory.add(making.cleared), step, || 0_u8) };
            making.cleared += step;
            if making.cleared == layout.size() {
                let first = memory.cast::<AtomicU8>().as_ptr();
                let base = self.base.load(Ordering::Relaxed) >> GRANULE_BITS;
                // Release: pairs with the acquire in `table`. Not null, because the memory lies above the base.
                self.first.store(first.wrapping_sub(base), Ordering::Release);
            }
        }
    }
}
