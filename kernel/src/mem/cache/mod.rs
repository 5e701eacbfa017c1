//! Caches of small blocks: one for each core, and a depot for all.
//!
//! After the magazines of Bonwick and Adams ("Magazines and Vmem", 2001). A core keeps two lists of free
//! blocks for each size class: one in use, of any length, and one that is empty or holds exactly a batch. It
//! allocates from the first; when that is empty the two change places, and when both are, a whole batch comes
//! from the depot. Freeing goes the other way. So a core that allocates and frees around any point visits the
//! depot, which has a lock, at most once in a batch, and every step takes constant time.
//!
//! Another core cannot take blocks from a core's cache; those are at most two batches for each class. How they are
//! given back when memory is short is described in [`shortage`].

mod shortage;

use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;

use super::block::List;
use super::depot::{Depot, Source, Stock};
use super::keeper::Keeper;
use super::size_class::SizeClass;
use crate::arch::MAX_CORES;
use crate::arch::atomic::{AtomicU32, AtomicU64, Ordering};
use crate::arch::pair;
use crate::sync::PreemptGuard;
use shortage::Answer;
pub(crate) use shortage::LentCache;

/// One core's lists of one class.
struct Magazines {
    current: Cell<List>,
    /// Empty, or exactly a batch.
    spare: Cell<List>,
}

/// One core's cache.
// The counters come first, where they and the lists are near enough for single instructions.
#[repr(C, align(128))]
struct CoreCache {
    /// Bytes handed out here less bytes taken back here, modulo 2^64: what is handed out on one core may be
    /// given back on another. And how many blocks were handed out.
    counts: [AtomicU64; 2],
    classes: UnsafeCell<[Magazines; SizeClass::COUNT]>,
    /// Whose `classes` and `answer` are.
    keeper: Keeper,
    answer: UnsafeCell<Answer>,
}

// SAFETY: `classes` and `answer` are used by whoever has the keeper's lock: by its core, with preemption disabled and never
// from an interrupt handler that did not interrupt preemptible code, or while that sleeps by one other.
unsafe impl Sync for CoreCache {}

impl CoreCache {
    const fn empty() -> Self {
        Self {
            counts: [const { AtomicU64::new(0) }; 2],
            classes: UnsafeCell::new(
                [const { Magazines { current: Cell::new(List::EMPTY), spare: Cell::new(List::EMPTY) } };
                    SizeClass::COUNT],
            ),
            keeper: Keeper::new(),
            answer: UnsafeCell::new(Answer::NONE),
        }
    }

    /// A block of so many bytes was handed out.
    #[inline(always)]
    fn count_allocation(&self, bytes: usize) {
        let counts: *const u8 = self.counts.as_ptr().cast();
        // SAFETY: they are a pair. Only this core writes, and the readers are statistics.
        unsafe {
            let [in_use, allocations] = pair::load::<0>(counts);
            pair::store::<0>(counts, [in_use.wrapping_add(bytes as u64), allocations.wrapping_add(1)]);
        }
    }

    /// One was taken back.
    #[inline(always)]
    fn count_free(&self, bytes: usize) {
        let [in_use, _] = &self.counts;
        // Relaxed: as above.
        in_use.store(in_use.load(Ordering::Relaxed).wrapping_sub(bytes as u64), Ordering::Relaxed);
    }
}

/// The caches of all cores.
pub(super) struct Caches {
    cores: [CoreCache; MAX_CORES],
    /// By the number of the class.
    depots: [Stock; SizeClass::COUNT],
    /// How often memory was short.
    shortages: AtomicU32,
    /// As in [`CoreCache`], for callers that are on no core yet.
    elsewhere_in_use: AtomicU64,
    elsewhere_allocations: AtomicU64,
}

impl Caches {
    pub(super) const fn new() -> Self {
        Self {
            cores: [const { CoreCache::empty() }; MAX_CORES],
            depots: [const { Stock::empty() }; SizeClass::COUNT],
            shortages: AtomicU32::new(0),
            elsewhere_in_use: AtomicU64::new(0),
            elsewhere_allocations: AtomicU64::new(0),
        }
    }

    fn depot(&self, class: SizeClass) -> Depot<'_> {
        self.depots[class.index()].of(class)
    }

    /// A block of the class, or `None` without memory.
    /// `core` is the number of the core that runs this, or `None` if its scheduler does not run yet.
    #[inline(always)]
    pub(super) fn allocate(
        &self,
        class: SizeClass,
        core: Option<usize>,
        here: &PreemptGuard,
        source: &impl Source,
    ) -> Option<NonNull<u8>> {
        if let Some(block) = self.allocate_at_hand(class, core, here) {
            return Some(block);
        }
        let Some(cache) = core.and_then(|core| self.cores.get(core)) else {
            return self.allocate_elsewhere(class, source);
        };
        // SAFETY: as below.
        let magazines = unsafe { &(*cache.classes.get())[class.index()] };
        magazines.current.set(self.refill(class, cache, magazines, source)?);
        self.allocate_at_hand(class, core, here)
    }

    /// The same, of what the core has at hand: what almost every block comes from.
    #[inline(always)]
    pub(super) fn allocate_at_hand(
        &self,
        class: SizeClass,
        core: Option<usize>,
        _here: &PreemptGuard,
    ) -> Option<NonNull<u8>> {
        let cache = self.cores.get(core?)?;
        // SAFETY: the caller is on this core, and preemption is disabled.
        let magazines = unsafe { &(*cache.classes.get())[class.index()] };
        let mut list = magazines.current.get();
        let block = list.pop()?;
        magazines.current.set(list);
        cache.count_allocation(class.block_bytes());
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
        source: &impl Source,
    ) {
        let Some(cache) = core.and_then(|core| self.cores.get(core)) else {
            // SAFETY: the caller promised a block of this class that nobody uses any more.
            unsafe { self.free_elsewhere(block, class, source) };
            return;
        };
        // SAFETY: as in `allocate_at_hand`.
        let magazines = unsafe { &(*cache.classes.get())[class.index()] };
        let mut list = magazines.current.get();
        if list.count == class.batch() {
            let spare = magazines.spare.replace(list);
            list = List::EMPTY;
            magazines.current.set(list);
            if spare.count != 0 {
                // SAFETY: a spare list that is not empty is a batch of the class; the caller is the cache's core.
                unsafe { self.spill(class, cache, spare, source) };
            }
        }
        // SAFETY: the caller promised a block of this class that nobody uses any more.
        unsafe { list.push(block) };
        magazines.current.set(list);
        cache.count_free(class.block_bytes());
    }

    #[cold]
    #[inline(never)]
    fn refill(
        &self,
        class: SizeClass,
        cache: &CoreCache,
        magazines: &Magazines,
        source: &impl Source,
    ) -> Option<List> {
        let spare = magazines.spare.replace(List::EMPTY);
        if spare.count != 0 {
            return Some(spare);
        }
        // SAFETY: the caller is the cache's core; both lists of this class are empty.
        unsafe { self.answer(cache, source) };
        let list = self.depot(class).take(class.batch(), source);
        (list.count != 0).then_some(list)
    }

    /// # Safety
    /// `list` is a batch of free blocks of the class, and nobody else's; the caller is the cache's core.
    #[cold]
    #[inline(never)]
    unsafe fn spill(&self, class: SizeClass, cache: &CoreCache, list: List, source: &impl Source) {
        // SAFETY: the caller promised a batch of the class, and is the cache's core.
        unsafe {
            self.depot(class).put(list, source);
            self.answer(cache, source);
        }
    }

    #[cold]
    #[inline(never)]
    fn allocate_elsewhere(&self, class: SizeClass, source: &impl Source) -> Option<NonNull<u8>> {
        let block = self.depot(class).take(1, source).pop()?;
        self.count_elsewhere(class);
        Some(block)
    }

    /// A block that is not cut from a span, for when there is no room for a span.
    #[cold]
    #[inline(never)]
    pub(super) fn allocate_alone(&self, class: SizeClass, source: &impl Source) -> Option<NonNull<u8>> {
        let block = source.take_alone(class)?;
        self.count_elsewhere(class);
        Some(block)
    }

    fn count_elsewhere(&self, class: SizeClass) {
        // Relaxed: statistics.
        self.elsewhere_in_use.fetch_add(class.block_bytes() as u64, Ordering::Relaxed);
        self.elsewhere_allocations.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    #[inline(never)]
    unsafe fn free_elsewhere(&self, block: NonNull<u8>, class: SizeClass, source: &impl Source) {
        let mut list = List::EMPTY;
        // SAFETY: by the contract of `free`.
        unsafe {
            list.push(block);
            self.depot(class).put_apart(list, source);
        }
        // Relaxed: a statistic.
        self.elsewhere_in_use.fetch_add((class.block_bytes() as u64).wrapping_neg(), Ordering::Relaxed);
    }

    /// Calls for each free block that waits in a core's cache or in a depot.
    ///
    /// # Safety
    /// No other core uses the heap.
    pub(super) unsafe fn for_each_waiting(&self, mut tell: impl FnMut(usize, SizeClass)) {
        for class in SizeClass::ALL {
            for cache in &self.cores {
                // SAFETY: the caller promised that no other core uses the heap.
                unsafe {
                    let magazines = &(*cache.classes.get())[class.index()];
                    magazines.current.get().for_each(|start| tell(start, class));
                    magazines.spare.get().for_each(|start| tell(start, class));
                }
            }
            self.depot(class).for_each_waiting(|start| tell(start, class));
        }
    }

    /// Bytes of small blocks that are handed out; roughly, while cores allocate.
    pub(super) fn in_use_bytes(&self) -> u64 {
        // Relaxed: statistics.
        let elsewhere = self.elsewhere_in_use.load(Ordering::Relaxed);
        self.cores
            .iter()
            .fold(elsewhere, |sum, core| sum.wrapping_add(core.counts[0].load(Ordering::Relaxed)))
    }

    /// How many small blocks have ever been handed out.
    pub(super) fn allocations(&self) -> u64 {
        // Relaxed: statistics.
        let elsewhere = self.elsewhere_allocations.load(Ordering::Relaxed);
        self.cores.iter().fold(elsewhere, |sum, core| sum + core.counts[1].load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::Caches;
    use crate::checks::Random;
    use crate::mem::heap::{Heap, TestHeap};
    use crate::mem::size_class::SizeClass;
    use crate::sync::PreemptGuard;
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use core::alloc::Layout;

    pub(super) const MEGABYTE: usize = 1 << 20;
    const CORES: usize = 4;

    pub(super) fn class(bytes: usize) -> SizeClass {
        SizeClass::of(Layout::from_size_align(bytes, 8).expect("valid")).expect("small")
    }

    /// Gives back what all cores and depots keep.
    pub(super) fn empty(caches: &Caches, source: &Heap) {
        let here = PreemptGuard::new();
        for class in SizeClass::ALL {
            (0..CORES).for_each(|core| caches.empty_core(class, Some(core), &here, source));
            caches.empty_depot(class, source);
        }
    }

    /// Blocks of random classes, taken and given back on random cores and on no core, against a map of what is in use.
    #[test]
    fn blocks_do_not_overlap_and_every_span_comes_back() {
        let (caches, heap) = (Box::new(Caches::new()), TestHeap::new(16 * MEGABYTE));
        let source: &Heap = &heap;
        let here = PreemptGuard::new();
        let before = source.usage();
        for seed in 0..4 {
            let random = Random::new(seed, 0);
            let mut model: BTreeMap<usize, (SizeClass, _)> = BTreeMap::new();
            let mut in_use = Vec::new();
            for step in 0..20_000 {
                let core = Some(random.below(CORES + 1)).filter(|core| *core < CORES);
                // It grows for a while, then it shrinks, with few left in between.
                if random.below(10) < if step % 8000 < 4000 { 8 } else { 2 } {
                    let class = SizeClass::ALL[random.below(SizeClass::COUNT)];
                    let block = caches.allocate(class, core, &here, source).expect("memory");
                    let start = block.as_ptr().addr();
                    assert!(start.is_multiple_of(class.block_layout().align()));
                    let below = model.range(..start).next_back();
                    assert!(below.is_none_or(|(at, (class, _))| at + class.block_bytes() <= start));
                    let above = model.range(start..).next();
                    assert!(above.is_none_or(|(at, _)| start + class.block_bytes() <= *at));
                    // SAFETY: the block is that long, and the allocator no longer needs what it kept there.
                    unsafe { block.write_bytes(0xa5, class.block_bytes()) };
                    model.insert(start, (class, block));
                    in_use.push(start);
                } else if !in_use.is_empty() {
                    let start = in_use.swap_remove(random.below(in_use.len()));
                    let (class, block) = model.remove(&start).expect("in use");
                    // SAFETY: allocated with this class.
                    unsafe { caches.free(block, class, core, &here, source) };
                }
                if step % 1000 == 0 {
                    let bytes: usize = model.values().map(|(class, _)| class.block_bytes()).sum();
                    assert_eq!(caches.in_use_bytes(), bytes as u64);
                }
            }
            for (class, block) in model.into_values() {
                // SAFETY: allocated with this class.
                unsafe { caches.free(block, class, Some(1), &here, source) };
            }
            assert_eq!(caches.in_use_bytes(), 0);
            empty(&caches, source);
            assert_eq!(source.usage(), before, "spans are missing, or pieces of the central heap");
        }
    }

    /// Freeing alone, with nobody short of memory, gives nearly all back.
    #[test]
    fn what_is_freed_beyond_what_waits_goes_back() {
        let (caches, heap) = (Box::new(Caches::new()), TestHeap::new(24 * MEGABYTE));
        let source: &Heap = &heap;
        let here = PreemptGuard::new();
        let class = class(1000);
        let before = source.usage().1;
        let mut blocks = Vec::new();
        while let Some(block) = caches.allocate(class, Some(0), &here, source) {
            blocks.push(block);
        }
        assert!(blocks.len() > 20 * MEGABYTE / 1024);
        // SAFETY: allocated above, with this class.
        blocks.into_iter().for_each(|block| unsafe { caches.free(block, class, Some(1), &here, source) });
        let free = source.usage().1;
        assert!(free > before - 8 * MEGABYTE, "{free} of {before} bytes are free");
    }

    #[test]
    fn what_was_freed_is_used_again() {
        let (caches, heap) = (Box::new(Caches::new()), TestHeap::new(4 * MEGABYTE));
        let source: &Heap = &heap;
        let here = PreemptGuard::new();
        let class = class(64);
        let before = source.usage().1;
        for round in 0..100 {
            let blocks: Vec<_> = (0..1000)
                .map(|_| caches.allocate(class, Some(round % CORES), &here, source).expect("memory"))
                .collect();
            // SAFETY: allocated above, with this class.
            blocks.into_iter().for_each(|block| unsafe {
                caches.free(block, class, Some((round + 1) % CORES), &here, source);
            });
        }
        let taken = before - source.usage().1;
        // A thousand, what four caches may keep, and the rest of a span.
        let most = (1000 + 4 * 2 * class.batch() + class.batch()) * 64 + 33 * 1024;
        assert!(taken <= most, "{taken} bytes were taken");
    }
}
