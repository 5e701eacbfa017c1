//! Caches of small blocks: one for each core, and a depot for all.
//!
//! After the magazines of Bonwick and Adams ("Magazines and Vmem", 2001). A core keeps two lists of free
//! blocks for each size class: one in use, of any length, and one that is empty or holds exactly a batch. It
//! allocates from the first; when that is empty the two change places, and when both are, a whole batch comes
//! from the depot. Freeing goes the other way. So a core that allocates and frees around any point visits the
//! depot, which has a lock, at most once in a batch, and every step takes constant time.
//!
//! What was cut into small blocks stays small blocks. Blocks in one core's cache are not to be had by another;
//! those are at most two batches for each class.

use core::cell::{Cell, UnsafeCell};
use core::ptr::{self, NonNull};

use super::size_class::SizeClass;
use crate::arch::MAX_CORES;
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::sync::{PreemptGuard, SpinLock};

/// A free block: it holds the links. The smallest class has room for two.
struct Block {
    next: *mut Block,
    /// In the first block of a batch that is in the depot: the next batch.
    next_batch: *mut Block,
}

/// A list of free blocks of one class.
#[derive(Clone, Copy)]
struct List {
    head: *mut Block,
    count: usize,
}

impl List {
    const EMPTY: Self = Self { head: ptr::null_mut(), count: 0 };

    #[inline(always)]
    fn pop(&mut self) -> Option<NonNull<u8>> {
        let block = NonNull::new(self.head)?;
        // SAFETY: blocks on a list are free, so their first words are the list's.
        self.head = unsafe { block.as_ref() }.next;
        self.count -= 1;
        Some(block.cast())
    }

    /// # Safety
    /// `block` is a free block of the list's class, aligned to 16 bytes, and nobody else's.
    #[inline(always)]
    unsafe fn push(&mut self, block: NonNull<u8>) {
        let block = block.cast::<Block>();
        // SAFETY: by contract; the smallest block has room for the links.
        unsafe { block.write(Block { next: self.head, next_batch: ptr::null_mut() }) };
        self.head = block.as_ptr();
        self.count += 1;
    }
}

/// What all cores share of one class.
struct Depot {
    /// Batches, linked through their first blocks.
    batches: *mut Block,
    /// Single blocks: what was allocated or freed where no core's cache could be used.
    loose: List,
}

// SAFETY: free blocks may be used from any core.
unsafe impl Send for Depot {}

impl Depot {
    const EMPTY: Self = Self { batches: ptr::null_mut(), loose: List::EMPTY };

    /// # Safety
    /// `list` is a batch of the depot's class.
    unsafe fn put(&mut self, list: List) {
        // SAFETY: a batch is not empty, and its blocks are free.
        unsafe { (*list.head).next_batch = self.batches };
        self.batches = list.head;
    }

    fn take(&mut self, class: SizeClass) -> Option<List> {
        let head = NonNull::new(self.batches)?;
        // SAFETY: batches in the depot are free blocks.
        self.batches = unsafe { head.as_ref() }.next_batch;
        Some(List { head: head.as_ptr(), count: class.batch() })
    }
}

/// One core's lists of one class.
struct Magazines {
    current: Cell<List>,
    /// Empty, or exactly a batch.
    spare: Cell<List>,
}

/// One core's cache.
#[repr(align(128))]
struct CoreCache {
    classes: UnsafeCell<[Magazines; SizeClass::COUNT]>,
    /// Bytes handed out here less bytes taken back here, modulo 2^64: what is handed out on one core may be
    /// given back on another.
    in_use: AtomicU64,
    allocations: AtomicU64,
}

// SAFETY: `classes` is used by its core only, with preemption disabled and never from an interrupt handler
// that did not interrupt preemptible code.
unsafe impl Sync for CoreCache {}

impl CoreCache {
    const fn empty() -> Self {
        Self {
            classes: UnsafeCell::new(
                [const { Magazines { current: Cell::new(List::EMPTY), spare: Cell::new(List::EMPTY) } };
                    SizeClass::COUNT],
            ),
            in_use: AtomicU64::new(0),
            allocations: AtomicU64::new(0),
        }
    }

    fn count(&self, bytes: u64, allocations: u64) {
        // Relaxed: only this core writes, and the readers are statistics.
        self.in_use.store(self.in_use.load(Ordering::Relaxed).wrapping_add(bytes), Ordering::Relaxed);
        self.allocations
            .store(self.allocations.load(Ordering::Relaxed).wrapping_add(allocations), Ordering::Relaxed);
    }
}

/// The caches of all cores.
pub(super) struct Caches {
    cores: [CoreCache; MAX_CORES],
    depots: [SpinLock<Depot>; SizeClass::COUNT],
    /// As in [`CoreCache`], for callers that are on no core yet.
    elsewhere_in_use: AtomicU64,
    elsewhere_allocations: AtomicU64,
}

impl Caches {
    pub(super) const fn new() -> Self {
        Self {
            cores: [const { CoreCache::empty() }; MAX_CORES],
            depots: [const { SpinLock::new(Depot::EMPTY) }; SizeClass::COUNT],
            elsewhere_in_use: AtomicU64::new(0),
            elsewhere_allocations: AtomicU64::new(0),
        }
    }

    /// A block of the class, or `None` without memory. `more` gives memory of a layout; it may take a lock.
    /// `core` is the number of the core that runs this, or `None` if its scheduler does not run yet.
    #[inline(always)]
    pub(super) fn allocate(
        &self,
        class: SizeClass,
        core: Option<usize>,
        _here: &PreemptGuard,
        more: impl FnMut(core::alloc::Layout) -> Option<NonNull<u8>>,
    ) -> Option<NonNull<u8>> {
        let Some(cache) = core.and_then(|core| self.cores.get(core)) else {
            return self.allocate_elsewhere(class, more);
        };
        // SAFETY: the caller is on this core, and preemption is disabled.
        let magazines = unsafe { &(*cache.classes.get())[class.index()] };
        let mut list = magazines.current.get();
        let block = match list.pop() {
            Some(block) => block,
            None => {
                list = self.refill(class, magazines, more)?;
                list.pop()?
            }
        };
        magazines.current.set(list);
        cache.count(class.block_bytes() as u64, 1);
        Some(block)
    }

    /// Takes a block back.
    ///
    /// # Safety
    /// The block came from [`Self::allocate`] with this class, and nobody uses it any more.
    #[inline(always)]
    pub(super) unsafe fn free(
        &self,
        block: NonNull<u8>,
        class: SizeClass,
        core: Option<usize>,
        _here: &PreemptGuard,
    ) {
        let bytes = (class.block_bytes() as u64).wrapping_neg();
        let Some(cache) = core.and_then(|core| self.cores.get(core)) else {
            // SAFETY: by contract.
            unsafe { self.depots[class.index()].lock().loose.push(block) };
            // Relaxed: a statistic.
            self.elsewhere_in_use.fetch_add(bytes, Ordering::Relaxed);
            return;
        };
        // SAFETY: as in `allocate`.
        let magazines = unsafe { &(*cache.classes.get())[class.index()] };
        let mut list = magazines.current.get();
        if list.count == class.batch() {
            let spare = magazines.spare.replace(list);
            if spare.count != 0 {
                // SAFETY: a spare list that is not empty is a batch of the class.
                unsafe { self.depots[class.index()].lock().put(spare) };
            }
            list = List::EMPTY;
        }
        // SAFETY: by contract.
        unsafe { list.push(block) };
        magazines.current.set(list);
        cache.count(bytes, 0);
    }

    #[cold]
    #[inline(never)]
    fn refill(
        &self,
        class: SizeClass,
        magazines: &Magazines,
        mut more: impl FnMut(core::alloc::Layout) -> Option<NonNull<u8>>,
    ) -> Option<List> {
        let spare = magazines.spare.replace(List::EMPTY);
        if spare.count != 0 {
            return Some(spare);
        }
        let mut depot = self.depots[class.index()].lock();
        if let Some(batch) = depot.take(class) {
            return Some(batch);
        }
        if depot.loose.count != 0 {
            let block = depot.loose.pop();
            drop(depot);
            let mut list = List::EMPTY;
            if let Some(block) = block {
                // SAFETY: it was on a list of the class, and is nobody else's now.
                unsafe { list.push(block) };
            }
            return Some(list);
        }
        drop(depot);
        let mut list = List::EMPTY;
        if let Some(memory) = more(class.batch_layout()) {
            for index in (0..class.batch()).rev() {
                // SAFETY: the layout has room for so many blocks one behind the other, and its alignment
                // makes every block aligned.
                unsafe { list.push(memory.add(index * class.block_bytes())) };
            }
        } else {
            // Memory is short: what there is.
            let block = more(class.block_layout())?;
            // SAFETY: as above, for one.
            unsafe { list.push(block) };
        }
        Some(list)
    }

    #[cold]
    #[inline(never)]
    fn allocate_elsewhere(
        &self,
        class: SizeClass,
        mut more: impl FnMut(core::alloc::Layout) -> Option<NonNull<u8>>,
    ) -> Option<NonNull<u8>> {
        let loose = self.depots[class.index()].lock().loose.pop();
        let block = loose.or_else(|| more(class.block_layout()))?;
        // Relaxed: statistics.
        self.elsewhere_in_use.fetch_add(class.block_bytes() as u64, Ordering::Relaxed);
        self.elsewhere_allocations.fetch_add(1, Ordering::Relaxed);
        Some(block)
    }

    /// Bytes of small blocks that are handed out; roughly, while cores allocate.
    pub(super) fn in_use_bytes(&self) -> u64 {
        // Relaxed: statistics.
        let elsewhere = self.elsewhere_in_use.load(Ordering::Relaxed);
        self.cores.iter().fold(elsewhere, |sum, core| sum.wrapping_add(core.in_use.load(Ordering::Relaxed)))
    }

    /// How many small blocks have ever been handed out.
    pub(super) fn allocations(&self) -> u64 {
        // Relaxed: statistics.
        let elsewhere = self.elsewhere_allocations.load(Ordering::Relaxed);
        self.cores.iter().fold(elsewhere, |sum, core| sum + core.allocations.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::Caches;
    use crate::mem::size_class::SizeClass;
    use crate::sync::PreemptGuard;
    use alloc::boxed::Box;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use core::alloc::Layout;
    use core::ptr::NonNull;

    fn more(layout: Layout) -> Option<NonNull<u8>> {
        // SAFETY: the size is not zero.
        NonNull::new(unsafe { std::alloc::alloc(layout) })
    }

    fn class(bytes: usize) -> SizeClass {
        SizeClass::of(Layout::from_size_align(bytes, 8).expect("valid")).expect("small")
    }

    #[test]
    fn blocks_are_distinct_and_come_back_on_any_core() {
        let caches = Box::new(Caches::new());
        let here = PreemptGuard::new();
        for bytes in [1, 16, 100, 500, 2048] {
            let class = class(bytes);
            for round in 0..3 {
                let blocks: Vec<_> = (0..300)
                    .map(|n| {
                        let core = if n % 5 == 4 { None } else { Some(n % 5) };
                        caches.allocate(class, core, &here, more).expect("memory")
                    })
                    .collect();
                let distinct: BTreeSet<_> = blocks.iter().map(|block| block.as_ptr() as usize).collect();
                assert_eq!(distinct.len(), 300);
                let mut sorted: Vec<_> = distinct.into_iter().collect();
                sorted.windows(2).for_each(|pair| assert!(pair[1] - pair[0] >= class.block_bytes()));
                sorted.clear();
                assert_eq!(caches.in_use_bytes(), 300 * class.block_bytes() as u64);
                for (n, block) in blocks.into_iter().enumerate() {
                    let core = if (n + round) % 3 == 2 { None } else { Some((n + round) % 3) };
                    // SAFETY: allocated above, with this class.
                    unsafe { caches.free(block, class, core, &here) };
                }
                assert_eq!(caches.in_use_bytes(), 0);
            }
        }
    }

    #[test]
    fn what_was_freed_is_used_again() {
        let caches = Box::new(Caches::new());
        let here = PreemptGuard::new();
        let class = class(64);
        let mut taken = 0;
        for round in 0..100 {
            let blocks: Vec<_> = (0..1000)
                .map(|_| {
                    let counted = |layout: Layout| {
                        taken += layout.size();
                        more(layout)
                    };
                    caches.allocate(class, Some(round % 4), &here, counted).expect("memory")
                })
                .collect();
            // SAFETY: allocated above, with this class.
            blocks
                .into_iter()
                .for_each(|block| unsafe { caches.free(block, class, Some((round + 1) % 4), &here) });
        }
        // A thousand, and what four caches may keep.
        assert!(taken <= (1000 + 4 * 2 * class.batch() + class.batch()) * 64, "{taken} bytes were taken");
    }

    #[test]
    fn the_last_block_is_found_when_no_batch_is_left() {
        let caches = Box::new(Caches::new());
        let here = PreemptGuard::new();
        let class = class(64);
        let mut left = 3;
        let mut scarce = |layout: Layout| {
            if layout.size() > 64 || left == 0 {
                return None;
            }
            left -= 1;
            more(layout)
        };
        for _ in 0..3 {
            assert!(caches.allocate(class, Some(0), &here, &mut scarce).is_some());
        }
        assert!(caches.allocate(class, Some(0), &here, &mut scarce).is_none());
    }
}
