//! The heap: small blocks from each core's cache, everything else from the central heap behind a lock.
//!
//! Blocks of one size class are cut from spans, which come from the central heap and go back to it. When it has no room,
//! what waits in this core's cache, in the depots and in the caches of sleeping cores is taken apart, so that spans return;
//! meanwhile it is asked again.

use core::alloc::{GlobalAlloc, Layout};
use core::ptr::{self, NonNull};

use super::cache::Caches;
use super::central::Central;
use super::depot::Source;
use super::large_table::{GRANULE_BYTES, LargeTable};
use super::orphans;
use super::size_class::SizeClass;
use super::span::{SPAN_BYTES, SPAN_LAYOUT};
use super::span_table::{SpanTable, UNIT_BYTES};
use crate::arch::atomic::{AtomicU64, Ordering};
use crate::arch::{MAX_CORES, percpu};
use crate::sync::{PreemptGuard, SpinLock};

/// The kernel's allocator.
pub struct Heap {
    central: SpinLock<Central>,
    pub(super) caches: Caches,
    pub(super) table: SpanTable,
    pub(super) large: LargeTable,
    /// Marks for the collector of what crashes leave behind.
    pub(super) marked: orphans::Memory,
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
            cut_bytes: AtomicU64::new(0),
            large_allocations: AtomicU64::new(0),
        }
    }

    /// Gives it its memory.
    ///
    /// # Safety
    /// The region is used for nothing else, and this is called once.
    pub unsafe fn init(&self, start: usize, length_bytes: usize) {
        let begin = start.next_multiple_of(UNIT_BYTES);
        let Some(length) = length_bytes.checked_sub(begin - start) else { return };
        let memory = NonNull::new(ptr::with_exposed_provenance_mut::<u8>(begin));
        let layouts = SpanTable::layout(length).zip(LargeTable::layout(length));
        let (Some(memory), Some((spans, large))) = (memory, layouts) else { return };
        let spans_bytes = spans.size().next_multiple_of(UNIT_BYTES);
        let tables_bytes = spans_bytes + large.size().next_multiple_of(UNIT_BYTES);
        let marks_bytes = orphans::Memory::bytes_for(length).next_multiple_of(UNIT_BYTES);
        let Some(rest) = length.checked_sub(tables_bytes + marks_bytes) else { return };
        // SAFETY: by contract the region is ours; the tables' parts and the rest do not overlap.
        unsafe {
            self.table.init(memory, begin, length);
            self.large.init(memory.add(spans_bytes), begin, length);
            self.marked.init(memory.add(tables_bytes), begin, length);
            self.central.lock().init(memory.add(tables_bytes + marks_bytes), rest);
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

    /// A block that the table of large blocks has, with so many bytes.
    fn take_noted(&self, layout: Layout, bytes: usize) -> Option<NonNull<u8>> {
        let mut central = self.central.lock();
        let block = central.allocate(noted(layout))?;
        self.large.insert(block, bytes);
        Some(block)
    }

    /// # Safety
    /// The block came from [`Self::take_noted`] with this layout, and nobody uses it any more.
    unsafe fn give_noted(&self, block: NonNull<u8>, layout: Layout) {
        let mut central = self.central.lock();
        self.large.remove(block);
        // SAFETY: by contract.
        unsafe { central.deallocate(block, noted(layout)) };
    }

    /// Out of line, like what is below: the way to a small block in the cache needs none of their registers.
    #[inline(never)]
    fn take_large(&self, layout: Layout) -> *mut u8 {
        let attempt = || self.take_noted(layout, noted(layout).size());
        let block = attempt().or_else(|| self.give_up_kept_until(attempt));
        // Relaxed: a statistic.
        self.large_allocations.fetch_add(u64::from(block.is_some()), Ordering::Relaxed);
        block.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    /// A small block when there was no room for a span.
    #[cold]
    #[inline(never)]
    fn take_small_when_short(&self, class: SizeClass) -> *mut u8 {
        let block = self.give_up_kept_until(|| {
            let here = PreemptGuard::new();
            self.caches.allocate(class, core_here(&here), &here, self)
        });
        let block = block.or_else(|| self.caches.allocate_alone(class, self));
        block.map_or(ptr::null_mut(), NonNull::as_ptr)
    }

    #[inline(never)]
    pub(super) unsafe fn give_large(&self, block: NonNull<u8>, layout: Layout) {
        // SAFETY: by the contract of `dealloc`.
        unsafe { self.give_noted(block, layout) };
    }

    /// Gives free blocks back to their spans until the attempt succeeds: class by class those of this core and the
    /// depots, then core by core those of who sleeps. Who is awake gives back its own before long, and if crashes have left
    /// something, it is looked for. The caller can be preempted between one batch and the next.
    fn give_up_kept_until<T>(&self, attempt: impl Fn() -> Option<T>) -> Option<T> {
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

    /// What a core does between two turns when memory was short. Whether there is more to do.
    pub(crate) fn answer_shortage(&self) -> bool {
        let here = PreemptGuard::new();
        self.caches.answer_shortage(core_here(&here), &here, self)
    }

    /// Sleeps, while others that are short of memory may have what this core keeps.
    ///
    /// # Safety
    /// The caller is a core's loop. Neither `sleep` nor an interrupt handler in it allocates or frees.
    pub(crate) unsafe fn lend_cache_during(&self, sleep: impl FnOnce()) {
        let here = PreemptGuard::new();
        let core = core_here(&here);
        // SAFETY: by contract.
        unsafe { self.caches.let_go(core) };
        sleep();
        self.caches.take_back(core, &here);
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
fn noted(layout: Layout) -> Layout {
    // SAFETY: the alignment is valid, and a size of a granule does not overflow when rounded up to it, or the layout is
    // as it was.
    unsafe { Layout::from_size_align_unchecked(layout.size().max(GRANULE_BYTES + 1), layout.align()) }
}

/// The core whose cache may be used, if its scheduler runs.
#[inline(always)]
pub(super) fn core_here(_here: &PreemptGuard) -> Option<usize> {
    (!percpu::core_block().is_null()).then(percpu::core_number)
}

// SAFETY: the central heap returns blocks that fit the layout and do not overlap, with the lock making it one caller at
// a time; spans cut such blocks into smaller ones, aligned as their class says.
unsafe impl GlobalAlloc for Heap {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let Some(class) = SizeClass::of(layout) else { return self.take_large(layout) };
        let here = PreemptGuard::new();
        if let Some(block) = self.caches.allocate(class, core_here(&here), &here, self) {
            return block.as_ptr();
        }
        // The rest may take long.
        drop(here);
        self.take_small_when_short(class)
    }

    #[inline]
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        let Some(block) = NonNull::new(block) else { return };
        match SizeClass::of(layout) {
            Some(class) => {
                let here = PreemptGuard::new();
                // SAFETY: by contract the block came from `alloc` with this layout, so with this class.
                unsafe { self.caches.free(block, class, core_here(&here), &here, self) };
            }
            // SAFETY: by contract the block came from `alloc` with this layout.
            None => unsafe { self.give_large(block, layout) },
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
mod tests {
    use super::Heap;
    use crate::checks::Random;
    use alloc::boxed::Box;
    use alloc::collections::BTreeMap;
    use alloc::vec::Vec;
    use core::alloc::{GlobalAlloc, Layout};

    /// Memory from the host, for a heap to be made of.
    pub(in crate::mem) struct Region {
        memory: *mut u8,
        layout: Layout,
    }

    impl Region {
        pub(in crate::mem) fn new(bytes: usize) -> Self {
            let layout = Layout::from_size_align(bytes, 4096).expect("valid");
            // SAFETY: the size is not zero.
            let memory = unsafe { std::alloc::alloc(layout) };
            assert!(!memory.is_null());
            Self { memory, layout }
        }

        /// Where it begins.
        pub(in crate::mem) fn start(&self) -> core::ptr::NonNull<u8> {
            core::ptr::NonNull::new(self.memory).expect("checked in `new`")
        }
    }

    impl Drop for Region {
        fn drop(&mut self) {
            // SAFETY: allocated with this layout.
            unsafe { std::alloc::dealloc(self.memory, self.layout) };
        }
    }

    /// A heap in memory of its own, which begins where nothing is aligned.
    pub(in crate::mem) struct TestHeap {
        heap: Box<Heap>,
        pub(in crate::mem) region: Region,
    }

    impl TestHeap {
        pub(in crate::mem) fn new(bytes: usize) -> Self {
            let (heap, region) = (Box::new(Heap::empty()), Region::new(bytes));
            // SAFETY: the region is used for nothing else.
            unsafe { heap.init(region.memory.expose_provenance() + 8, bytes - 8) };
            Self { heap, region }
        }
    }

    impl core::ops::Deref for TestHeap {
        type Target = Heap;

        fn deref(&self) -> &Heap {
            &self.heap
        }
    }

    impl Heap {
        /// Gives up whatever can be.
        pub(in crate::mem) fn give_up_all(&self) {
            assert_eq!(self.give_up_kept_until(|| None::<()>), None);
        }
    }

    /// Any layout that a program may ask for.
    pub(in crate::mem) fn layout(random: &mut Random) -> Layout {
        let size = match random.below(10) {
            0..7 => 1 + random.below(2048),
            7..9 => 1 + random.below(40_000),
            _ => 1 + random.below(400_000),
        };
        let alignment = if random.below(8) == 0 { 1 << random.below(13) } else { 16 };
        Layout::from_size_align(size, alignment).expect("valid")
    }

    /// Any layouts in any order, until memory is short and beyond, against a map of what is in use.
    #[test]
    fn it_agrees_with_a_map_of_what_is_in_use() {
        let heap = TestHeap::new(8 << 20);
        let region = &heap.region;
        let before = heap.usage();
        assert!(before.0 == 0 && before.1 > (8 << 20) / 100 * 97, "{before:?}");
        let (mut refused, mut moved) = (0, 0);
        for seed in 0..6 {
            let mut random = Random::new(seed, 1);
            let mut model: BTreeMap<usize, (*mut u8, Layout)> = BTreeMap::new();
            let mut starts: Vec<usize> = Vec::new();
            let check = |model: &BTreeMap<usize, (*mut u8, Layout)>, block: *mut u8, layout: Layout| {
                let (start, end) = (block.addr(), block.addr() + layout.size());
                assert!(start.is_multiple_of(layout.align()));
                assert!(start >= region.memory.addr() && end <= region.memory.addr() + region.layout.size());
                assert!(
                    model.range(..start).next_back().is_none_or(|(at, (_, was))| at + was.size() <= start)
                );
                assert!(model.range(start..).next().is_none_or(|(at, _)| end <= *at));
            };
            for step in 0..12_000 {
                // SAFETY: no size is zero; blocks go back with the layout they have.
                unsafe {
                    match random.below(20) {
                        0..9 => {
                            let layout = layout(&mut random);
                            let block = heap.alloc(layout);
                            if block.is_null() {
                                refused += 1;
                                continue;
                            }
                            check(&model, block, layout);
                            block.write_bytes(step as u8, layout.size());
                            model.insert(block.addr(), (block, layout));
                            starts.push(block.addr());
                        }
                        9 if !starts.is_empty() => {
                            let start = starts.swap_remove(random.below(starts.len()));
                            let (block, old) = model[&start];
                            let size = 1 + random.below(old.size() * 2);
                            let byte = block.read();
                            let again = heap.realloc(block, old, size);
                            let (block, new) = if again.is_null() {
                                (block, old)
                            } else {
                                model.remove(&start);
                                (again, Layout::from_size_align(size, old.align()).expect("valid"))
                            };
                            if again != block || again.addr() != start {
                                moved += 1;
                            }
                            assert_eq!(block.read(), byte);
                            if !again.is_null() {
                                check(&model, block, new);
                                // The same byte all over, as when it was allocated.
                                block.write_bytes(byte, new.size());
                            }
                            model.insert(block.addr(), (block, new));
                            starts.push(block.addr());
                        }
                        10.. if !starts.is_empty() => {
                            let start = starts.swap_remove(random.below(starts.len()));
                            let (block, layout) = model.remove(&start).expect("in use");
                            let bytes = core::slice::from_raw_parts(block, layout.size());
                            assert!(
                                bytes.iter().all(|byte| *byte == bytes[0]),
                                "somebody wrote into a block"
                            );
                            heap.dealloc(block, layout);
                        }
                        _ => {}
                    }
                }
                if step % 500 == 0 {
                    let asked: usize = model.values().map(|(_, layout)| layout.size()).sum();
                    let (used, free) = heap.usage();
                    assert!(used >= asked, "{asked} bytes are in use, not {used}");
                    assert!(used + free + heap.kept() <= region.layout.size());
                }
                // Now and then memory is used up.
                if step % 3000 == 2000 {
                    let layout = Layout::from_size_align(9000, 16).expect("valid");
                    // SAFETY: the size is not zero.
                    while let Some(block) = core::ptr::NonNull::new(unsafe { heap.alloc(layout) }) {
                        let block = block.as_ptr();
                        check(&model, block, layout);
                        // SAFETY: the block is that long.
                        unsafe { block.write_bytes(7, layout.size()) };
                        model.insert(block.addr(), (block, layout));
                        starts.push(block.addr());
                    }
                }
            }
            for (block, layout) in model.into_values() {
                // SAFETY: allocated with this layout.
                unsafe { heap.dealloc(block, layout) };
            }
            assert_eq!(heap.usage().0, 0, "bytes in use, though all was given back");
            heap.give_up_all();
            assert_eq!(heap.usage(), before);
            assert_eq!(heap.kept(), 0);
        }
        assert!(refused > 100 && moved > 100, "{refused} were refused, {moved} moved");
    }

    /// With no room for a span left, small blocks are made of what there is, and go back to where they came from.
    #[test]
    fn the_last_memory_serves_small_blocks() {
        let heap = TestHeap::new(1 << 20);
        let before = heap.usage();
        let (large, small) = (Layout::new::<[u64; 1000]>(), Layout::new::<[u64; 10]>());
        let mut blocks = Vec::new();
        for layout in [large, small] {
            // SAFETY: the size is not zero.
            while let Some(block) = core::ptr::NonNull::new(unsafe { heap.alloc(layout) }) {
                blocks.push((block, layout));
            }
            // Holes, each of them too short for a span.
            for index in [90, 70, 50, 30, 10] {
                let (block, layout) = blocks.swap_remove(index);
                // SAFETY: allocated with this layout.
                unsafe { heap.dealloc(block.as_ptr(), layout) };
            }
        }
        let small_ones = blocks.iter().filter(|(_, layout)| *layout == small).count();
        assert!(small_ones > 10, "{small_ones} small blocks of what was left");
        assert!(heap.usage().1 < 60_000, "{} bytes are left", heap.usage().1);
        for (block, layout) in blocks {
            // SAFETY: allocated with this layout.
            unsafe { heap.dealloc(block.as_ptr(), layout) };
        }
        heap.give_up_all();
        assert_eq!(heap.usage(), before);
    }

    /// At any size of the memory, that of one block is never in vain sought in the wrong list.
    #[test]
    fn nearly_all_of_memory_fits_in_one_block() {
        for megabytes in [1, 3, 64, 890, 1100] {
            let heap = TestHeap::new(megabytes << 20);
            let layout = Layout::from_size_align((megabytes << 20) / 100 * 97, 16).expect("valid");
            // SAFETY: the size is not zero.
            let block = unsafe { heap.alloc(layout) };
            assert!(!block.is_null(), "of {megabytes} MiB");
        }
    }

    #[test]
    fn a_heap_without_memory_refuses() {
        let heap = Box::new(Heap::empty());
        // SAFETY: the sizes are not zero.
        unsafe {
            assert!(heap.alloc(Layout::new::<u64>()).is_null());
            assert!(heap.alloc(Layout::new::<[u64; 1000]>()).is_null());
        }
        assert_eq!(heap.usage(), (0, 0));
    }
}
