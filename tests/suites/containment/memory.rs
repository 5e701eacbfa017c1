//! Memory that was given back serves every other size.

use alloc::alloc::{alloc, dealloc};
use alloc::vec::Vec;
use core::alloc::Layout;
use core::hint::black_box;
use core::ptr;

use magpie::arch::CoreId;
use magpie::internals::mem::heap::HEAP;
use magpie::machine;
use magpie::sched::{self, Spawn};
use magpie::time::Instant;
use magpie_tests::{Changed, Failure, Outcome, ensure, kernel_test};

use crate::not_started;

/// Blocks of one size, linked through their first words: as many as there is room for. They go back when it is dropped.
struct Filled {
    first: *mut u8,
    layout: Layout,
    count: usize,
}

impl Filled {
    fn new(bytes: usize) -> Result<Self, Failure> {
        let Ok(layout) = Layout::from_size_align(bytes, 16) else { return Err("no such layout".into()) };
        let mut filled = Self { first: ptr::null_mut(), layout, count: 0 };
        loop {
            // SAFETY: the size is not zero.
            let block = unsafe { alloc(layout) };
            if block.is_null() {
                return Ok(filled);
            }
            // SAFETY: the block is ours, aligned to 16 bytes, and longer than a pointer.
            unsafe { block.cast::<*mut u8>().write(filled.first) };
            filled.first = block;
            filled.count += 1;
        }
    }

    fn bytes(&self) -> usize {
        self.count * self.layout.size()
    }
}

impl Drop for Filled {
    fn drop(&mut self) {
        while !self.first.is_null() {
            let block = self.first;
            // SAFETY: `new` wrote the link, and allocated the block with this layout.
            unsafe {
                self.first = block.cast::<*mut u8>().read();
                dealloc(block, self.layout);
            }
        }
    }
}

/// Whether there is one block of so many bytes.
fn has_room_for(bytes: usize) -> bool {
    let Ok(layout) = Layout::from_size_align(bytes, 4096) else { return false };
    // SAFETY: the size is not zero; the block goes back as it came. A pair that nobody looks at, the compiler may leave
    // out.
    unsafe {
        let block = black_box(alloc(layout));
        if !block.is_null() {
            dealloc(block, layout);
        }
        !block.is_null()
    }
}

/// All of memory in blocks of one size, which are freed; then what there is room for.
fn small_blocks_leave_room(bytes: usize, other: usize) -> Outcome {
    let (_, before) = HEAP.usage();
    // A number: the blocks are back when it is known.
    let filled = Filled::new(bytes)?.bytes();
    let (_, free) = HEAP.usage();
    let large = before / 4 * 3;
    let fits = has_room_for(large);
    let others = Filled::new(other)?.bytes();
    ensure!(filled > before / 10 * 9, "{filled} bytes in blocks of {bytes}, of {before} free");
    ensure!(free + (8 << 20) > before, "after blocks of {bytes} {free} bytes are free, before {before}");
    ensure!(fits, "after blocks of {bytes} no room for {large} bytes; {free} are free");
    ensure!(others > before / 10 * 9, "{others} bytes in blocks of {other}, of {before} free");
    Ok(())
}

/// How much memory such a test is about: so much, or half of the longest piece where that is less, as on a small machine.
fn arena(most: usize) -> usize {
    let mut bytes = HEAP.usage().1;
    while bytes > 0 && !has_room_for(bytes) {
        bytes = bytes / 8 * 7;
    }
    most.min(bytes / 2)
}

/// Takes memory until only so much is free, in one piece but for crumbs, so that tests of small blocks do not take long.
fn all_but(bytes: usize) -> Result<Vec<Vec<u8>>, Failure> {
    let piece = |bytes| {
        let mut piece = Vec::new();
        piece.try_reserve_exact(bytes).ok().map(|()| black_box(piece))
    };
    ensure!(bytes > 2 << 20, "memory is in pieces: {bytes} bytes is half of the longest");
    let Some(arena) = piece(bytes) else { return Err("memory is in pieces".into()) };
    let mut taken = Vec::with_capacity(64);
    let mut size = HEAP.usage().1;
    while size > 64 << 10 && taken.len() < taken.capacity() {
        match piece(size) {
            Some(piece) => taken.push(piece),
            None => size = size / 4 * 3,
        }
    }
    drop(arena);
    Ok(taken)
}

/// Every second block stays, the others are freed. What there is room for then: a block of half of what is free, and
/// how many bytes in blocks of the same size. Then the others go as well.
struct Holes {
    left: usize,
    fits: bool,
    again: usize,
}

impl Holes {
    fn between(bytes: usize) -> Result<Self, Failure> {
        let mut all = Filled::new(bytes)?;
        let empty = || Filled { first: ptr::null_mut(), layout: all.layout, count: 0 };
        let (mut kept, mut holes) = (empty(), empty());
        while !all.first.is_null() {
            let block = all.first;
            let into = if all.count.is_multiple_of(2) { &mut kept } else { &mut holes };
            // SAFETY: `Filled::new` wrote the link; the block changes its list.
            unsafe {
                all.first = block.cast::<*mut u8>().read();
                block.cast::<*mut u8>().write(into.first);
            }
            into.first = block;
            into.count += 1;
            all.count -= 1;
        }
        drop(holes);
        let left = kept.bytes();
        let fits = has_room_for(left / 2);
        let again = Filled::new(bytes)?.bytes();
        Ok(Self { left, fits, again })
    }
}

kernel_test! {
    /// All of memory in blocks of one size, which are freed: three quarters fit in one block, and nearly all in blocks
    /// of another size.
    async fn memory_serves_another_size_after_it_was_freed() -> Outcome {
        let _still = Changed::no_preemption()?;
        let taken = all_but(arena(24 << 20))?;
        small_blocks_leave_room(1000, 500)?;
        small_blocks_leave_room(64, 2000)?;
        small_blocks_leave_room(3000, 96)?;
        drop(taken);
        Ok(())
    }
}

kernel_test! {
    /// Holes between blocks that stay serve blocks of their own size and not one of many times that. With the last of
    /// the others they come together again.
    async fn memory_full_of_holes_comes_together_again() -> Outcome {
        let _still = Changed::no_preemption()?;
        let taken = all_but(arena(24 << 20))?;
        let (used_before, free_before) = HEAP.usage();
        for bytes in [112, 700, 3000] {
            let Holes { left, fits, again } = Holes::between(bytes)?;
            ensure!(!fits, "a block of {} bytes between blocks of {bytes}", left / 2);
            ensure!(again > left / 100 * 95, "{again} bytes fit into holes of {left} in blocks of {bytes}");
            ensure!(has_room_for(free_before / 4 * 3), "after holes between blocks of {bytes}");
        }
        let (used, _) = HEAP.usage();
        ensure!(used < used_before + 4096, "{used_before} bytes were in use, now {used}");
        drop(taken);
        Ok(())
    }
}

/// Takes all of memory in blocks of one size and gives it back, those in the middle last: they are what this core keeps.
fn keep_the_middle(bytes: usize) -> Outcome {
    const KEPT: usize = 64;
    let mut all = Filled::new(bytes)?;
    ensure!(all.count > 4 * KEPT, "only {} blocks", all.count);
    let mut middle = Filled { first: ptr::null_mut(), layout: all.layout, count: 0 };
    let mut link: *mut *mut u8 = &raw mut all.first;
    for index in 0..all.count / 2 + KEPT {
        // SAFETY: `Filled::new` wrote the links, and there are more blocks than these.
        unsafe {
            let block = link.read();
            let next = block.cast::<*mut u8>();
            if index < all.count / 2 {
                link = next;
            } else {
                link.write(next.read());
                next.write(middle.first);
                middle.first = block;
            }
        }
    }
    drop(all);
    drop(middle);
    Ok(())
}

/// On the first core: the last one keeps the middle of memory. Then there is room for a block of three quarters of it as
/// soon as that core sleeps, or works on.
async fn another_core_keeps_the_middle() -> Outcome {
    let Some(last) = CoreId::new(machine::cores() - 1) else { return Err("no core".into()) };
    let arena = arena(16 << 20);
    let taken = all_but(arena)?;
    let keeps = Spawn::new().pinned(last).start(async { keep_the_middle(1000) });
    keeps.map_err(not_started)?.await??;
    // Nothing is allocated meanwhile, for that could come to lie in the middle.
    let began = Instant::now();
    while !has_room_for(arena / 4 * 3) {
        ensure!(
            began.elapsed() < magpie_tests::HANGS_AFTER,
            "no room for three quarters of {arena} bytes; {:?} used and free",
            HEAP.usage()
        );
        sched::yield_now().await;
    }
    drop(taken);
    Ok(())
}

kernel_test! {
    /// Blocks were freed on another core, and wait there; when memory is short, they serve another size.
    async fn what_another_core_keeps_serves_another_size() -> Outcome {
        let _still = Changed::no_preemption()?;
        let test = Spawn::new().pinned(CoreId::BOOT).start(another_core_keeps_the_middle());
        test.map_err(not_started)?.await?
    }
}
