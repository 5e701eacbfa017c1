//! One design after another on the same requests: how much of memory they can use, and what each step costs.

use alloc::vec::Vec;
use core::alloc::Layout;
use core::ptr::NonNull;

use magpie::internals::Random;
use magpie::log::text;

use crate::cost::Cost;
use crate::designs::Design;
use crate::region::{MEBIBYTE, Region, shuffle};

const MEBIBYTES: usize = 32;
/// How often memory is filled.
const ROUNDS: u64 = 40;

type Blocks = Vec<(NonNull<u8>, Layout)>;

fn layout(bytes: usize) -> Option<Layout> {
    Layout::from_size_align(bytes, 16).ok()
}

/// A request of the trace: spans, large blocks, and now and then a very large one.
fn request(random: &Random) -> usize {
    match random.below(10) {
        0..6 => 32 << 10,
        6..9 => (2 << 10) + random.below(30 << 10),
        _ => (32 << 10) + random.below(MEBIBYTE - (32 << 10)),
    }
}

/// Memory is filled until a request is refused, then any half of it is freed; in the end all.
///
/// `None` without memory, here and below.
pub fn trace<D: Design>() -> Option<()> {
    let region = Region::new(MEBIBYTES)?;
    let design = &mut D::new(&region);
    text!("  {}", D::NAME);
    let random = Random::new(1, 0);
    let (mut taking, mut giving) = (Cost::default(), Cost::default());
    let mut blocks: Blocks = Vec::with_capacity(16 << 10);
    let (mut filled_sum, mut filled_least) = (0, usize::MAX);
    for _ in 0..ROUNDS {
        loop {
            let layout = layout(request(&random))?;
            // What is refused is no part of the cost: it is stated apart.
            let mut step = Cost::default();
            let Some(block) = step.of(|| design.allocate(layout)) else { break };
            taking.add(step);
            blocks.push((block, layout));
        }
        let filled: usize = blocks.iter().map(|(_, layout)| layout.size()).sum();
        let filled = filled * 1000 / (MEBIBYTES * MEBIBYTE);
        filled_sum += filled;
        filled_least = filled_least.min(filled);
        shuffle(&random, &mut blocks);
        give(design, &mut giving, blocks.drain(blocks.len() / 2..));
    }
    give(design, &mut giving, blocks.drain(..));
    let largest = (1..=MEBIBYTES * 8).rev().find(|eighths| {
        let Some(layout) = layout(eighths * MEBIBYTE / 8) else { return false };
        let block = design.allocate(layout);
        // SAFETY: allocated here.
        block.inspect(|block| unsafe { design.free(*block, layout) }).is_some()
    })?;
    let average = filled_sum / ROUNDS as usize;
    text!("    filled: {average} of 1000, least {filled_least}; in the end one of {} KiB", largest * 128);
    text!("    trace: allocate {taking}, free {giving}");
    Some(())
}

fn give(design: &mut impl Design, cost: &mut Cost, blocks: impl Iterator<Item = (NonNull<u8>, Layout)>) {
    for (block, layout) in blocks {
        // SAFETY: allocated with this layout, and used by nobody.
        cost.of(|| unsafe { design.free(block, layout) });
    }
}

/// How much there is room for in blocks of one size.
pub fn equal<D: Design>() -> Option<()> {
    let region = Region::new(MEBIBYTES)?;
    let design = &mut D::new(&region);
    let layout = layout(2100)?;
    let bytes = core::iter::from_fn(|| design.allocate(layout)).count() * layout.size();
    text!("    blocks of 2100 bytes: {} of 1000", bytes * 1000 / region.bytes());
    Some(())
}

/// Every second of many blocks is freed, then the others.
pub fn holes<D: Design>() -> Option<()> {
    let region = Region::new(MEBIBYTES)?;
    let design = &mut D::new(&region);
    let layout = layout(4000)?;
    let blocks: Vec<_> = core::iter::from_fn(|| design.allocate(layout)).take(8000).collect();
    let mut cost = Cost::default();
    for first in [0, 1] {
        let half = blocks.iter().skip(first).step_by(2).map(|block| (*block, layout));
        give(design, &mut cost, half);
    }
    text!("    holes: free {cost}");
    Some(())
}
