//! The whole heap, one of its own, where it does most at once: spans that come and go, a depot that is full, and memory
//! that is short while everything waits in depots.

use alloc::alloc::GlobalAlloc;
use alloc::vec::Vec;
use core::alloc::Layout;
use core::mem::ManuallyDrop;
use core::ptr::NonNull;

use magpie::internals::Random;
use magpie::internals::mem::heap::Heap;
use magpie::log::text;

use crate::cost::Cost;
use crate::region::{MEBIBYTE, Region, shuffle};

/// The sizes of all classes.
const CLASSES: [usize; 24] = [
    16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320, 384, 448, 512, 640, 768, 896, 1024, 1280,
    1536, 1792, 2048,
];

/// They are too long for a stack.
static HEAPS: [Heap; 5] = [const { Heap::empty() }; 5];

/// A heap in so many mebibytes. It stays, and is not to be had a second time.
fn heap(index: usize, mebibytes: usize) -> Option<&'static Heap> {
    let heap = HEAPS.get(index).filter(|heap| heap.usage() == (0, 0))?;
    let region = ManuallyDrop::new(Region::new(mebibytes)?);
    // SAFETY: the region is used for nothing else and stays; a heap without memory was not given any yet.
    unsafe { heap.init(core::slice::from_ref(&region.addresses())) };
    Some(heap)
}

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, 16).ok()
}

fn take(heap: &Heap, layout: Layout) -> Option<NonNull<u8>> {
    // SAFETY: no size here is zero.
    NonNull::new(unsafe { heap.alloc(layout) })
}

fn give(heap: &Heap, block: NonNull<u8>, layout: Layout) {
    // SAFETY: allocated with this layout, and used by nobody.
    unsafe { heap.dealloc(block.as_ptr(), layout) };
}

/// Memory is filled with blocks of one size, which are freed in any order; then one block of nearly all of memory is wanted.
///
/// `None` without memory, here and below.
pub fn one_size(index: usize, bytes: usize) -> Option<()> {
    const MOST: usize = 400_000;
    let heap = heap(index, 32)?;
    let small = layout(bytes)?;
    let (mut taking, mut giving, mut large) = (Cost::default(), Cost::default(), Cost::default());
    let mut blocks = Vec::with_capacity(MOST);
    while blocks.len() < MOST
        && heap.usage().1 > MEBIBYTE
        && let Some(block) = taking.of(|| take(heap, small))
    {
        blocks.push(block);
    }
    shuffle(&Random::new(1, 0), &mut blocks);
    for block in blocks {
        giving.of(|| give(heap, block, small));
    }
    let nearly_all = layout(heap.usage().1 + heap.kept() / 2)?;
    let block = large.of(|| take(heap, nearly_all))?;
    give(heap, block, nearly_all);
    text!("  blocks of {bytes} bytes: allocate {taking}, free {giving}; a large one of what waits {large}");
    Some(())
}

/// As much as can waits in depots, of every class, when one block of nearly all of memory is wanted; then one that cannot be
/// had.
pub fn shortage() -> Option<()> {
    let heap = heap(4, 160)?;
    for bytes in CLASSES {
        let layout = layout(bytes)?;
        let mut blocks = Vec::new();
        blocks.try_reserve_exact(5 * MEBIBYTE / bytes).ok()?;
        for _ in 0..5 * MEBIBYTE / bytes {
            blocks.push(take(heap, layout)?);
        }
        for block in blocks {
            give(heap, block, layout);
        }
    }
    let kept = heap.kept() >> 10;
    let (mut large, mut free, mut refused) = (Cost::default(), Cost::default(), Cost::default());
    let nearly_all = layout(150 * MEBIBYTE)?;
    let block = large.of(|| take(heap, nearly_all))?;
    if refused.of(|| take(heap, nearly_all)).is_some() {
        return None;
    }
    free.of(|| give(heap, block, nearly_all));
    text!(
        "  {kept} KiB wait, of every size: a block of 150 MiB costs {large}, a second is refused for {refused}, free {free}"
    );
    Some(())
}
