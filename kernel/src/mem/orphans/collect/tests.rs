//! The collector against a model: memory with blocks in it, of which the model knows who points to whom.

use super::{Collector, Extent, World};
use crate::arch::atomic::AtomicU64;
use crate::checks::Random;
use crate::mem::orphans::marks::{Mark, MarkedWords, Marks};
use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::cell::Cell;
use core::ops::Range;

/// Some memory with blocks in it, and some that are roots.
struct Model {
    heap: Box<[u128]>,
    roots: Box<[u64]>,
    /// By where they begin: bytes, and whether it is free.
    blocks: BTreeMap<usize, (usize, bool)>,
    /// By block, or 0 for the roots: what it has pointers to.
    pointers: BTreeMap<usize, BTreeSet<usize>>,
    /// Addresses of bytes that are part of a pointer.
    taken: BTreeSet<usize>,
    /// Those of the pointers that are at aligned addresses.
    aligned: BTreeMap<usize, BTreeSet<usize>>,
    /// How often the collector may ask before it is told that looking took too long.
    patience: Cell<usize>,
}

fn start_of(heap: &[u128]) -> usize {
    heap.as_ptr().expose_provenance()
}

impl Model {
    fn new(random: &Random, count: usize) -> Self {
        let sizes: Vec<_> = (0..count).map(|_| 16 * (1 + random.below(12))).collect();
        let mut heap = alloc::vec![0u128; sizes.iter().sum::<usize>() / 16].into_boxed_slice();
        let roots = alloc::vec![0u64; 64].into_boxed_slice();
        heap.as_mut_ptr().expose_provenance();
        let mut blocks = BTreeMap::new();
        let mut start = start_of(&heap);
        for size in sizes {
            blocks.insert(start, (size, random.below(4) == 0));
            start += size;
        }
        Self {
            heap,
            roots,
            blocks,
            pointers: BTreeMap::new(),
            aligned: BTreeMap::new(),
            taken: BTreeSet::new(),
            patience: Cell::new(usize::MAX),
        }
    }

    /// Writes a pointer into a block or, if that is 0, into the roots.
    fn point(&mut self, random: &Random, from: usize, to: usize) {
        let (place, room) = match from {
            0 => (self.roots.as_mut_ptr().cast::<u8>(), self.roots.len() * 8),
            from => {
                let offset = from - start_of(&self.heap);
                // SAFETY: within the slice.
                let place = unsafe { self.heap.as_mut_ptr().cast::<u8>().add(offset) };
                (place, self.blocks[&from].0)
            }
        };
        let at = if random.below(2) == 0 { random.below(room - 7) } else { 8 * random.below(room / 8) };
        // Anywhere in the block that it points to, but for those at odd addresses; with a tag or without.
        let inside = if at % 8 == 0 { random.below(self.blocks[&to].0) } else { 0 };
        let address = to + inside;
        let tag = (random.below(2) * random.below(1 << 16)) as u64;
        let bytes = place.addr() + at..place.addr() + at + 8;
        // Bytes that are zero may be part of one, too.
        if bytes.clone().any(|byte| self.taken.contains(&byte)) {
            return;
        }
        self.taken.extend(bytes);
        // SAFETY: the place has room for it there.
        unsafe { place.add(at).cast::<u64>().write_unaligned(address as u64 | tag << 48) };
        self.pointers.entry(from).or_default().insert(to);
        if at % 8 == 0 {
            self.aligned.entry(from).or_default().insert(to);
        }
    }

    fn reachable(
        &self,
        pointers: &BTreeMap<usize, BTreeSet<usize>>,
        from: impl IntoIterator<Item = usize>,
    ) -> BTreeSet<usize> {
        let mut found = BTreeSet::new();
        let mut waiting: Vec<usize> = from.into_iter().collect();
        while let Some(block) = waiting.pop() {
            for to in pointers.get(&block).into_iter().flatten() {
                if !self.blocks[to].1 && found.insert(*to) {
                    waiting.push(*to);
                }
            }
        }
        found
    }
}

impl World for Model {
    fn block_at(&self, address: usize) -> Option<Extent> {
        let (start, (bytes, _)) = self.blocks.range(..=address).next_back()?;
        (address < start + bytes).then_some(Extent { start: *start, bytes: *bytes })
    }

    fn block_from(&self, address: usize) -> Option<Extent> {
        self.block_at(address).filter(|block| block.start == address)
    }

    fn each_free(&self, visit: &mut dyn FnMut(Extent)) {
        let free = self.blocks.iter().filter(|(_, (_, is_free))| *is_free);
        free.for_each(|(start, (bytes, _))| visit(Extent { start: *start, bytes: *bytes }));
    }

    fn each_block(&self, visit: &mut dyn FnMut(Extent)) {
        self.blocks.iter().for_each(|(start, (bytes, _))| visit(Extent { start: *start, bytes: *bytes }));
    }

    fn each_root(&self, visit: &mut dyn FnMut(Range<usize>)) {
        let start = self.roots.as_ptr().expose_provenance();
        visit(start..start + self.roots.len() * 8);
    }

    fn is_over(&self) -> bool {
        let left = self.patience.get().saturating_sub(1);
        self.patience.set(left);
        left == 0
    }
}

/// In any memory, exactly those blocks become free that the dead could reach and nothing alive can.
#[test]
fn it_finds_what_only_the_dead_could_reach() {
    let (mut found, mut cut_short) = (0, 0);
    let mut collector = Box::new(Collector::new());
    for seed in 0..60 {
        let random = Random::new(seed, 1);
        // Now and then more blocks than can wait at a time.
        let count = if seed % 20 == 0 { 6000 } else { 20 + random.below(200) };
        let mut model = Model::new(&random, count);
        let all: Vec<usize> = model.blocks.keys().copied().collect();
        for _ in 0..count * 3 / 2 {
            let from = if random.below(12) == 0 { 0 } else { all[random.below(count)] };
            let to = all[random.below(count)];
            model.point(&random, from, to);
        }
        let orphans: Vec<usize> = (0..1 + count / 4).map(|_| all[random.below(count)] + 3).collect();
        let dead: BTreeSet<usize> = orphans.iter().map(|address| address - 3).collect();
        let dead: BTreeSet<usize> = dead.into_iter().filter(|block| !model.blocks[block].1).collect();
        let mut candidates = model.reachable(&model.aligned, dead.iter().copied());
        candidates.extend(&dead);
        let others =
            all.iter().copied().filter(|block| !model.blocks[block].1 && !candidates.contains(block));
        let living = model.reachable(&model.pointers, others.chain([0]));
        let expected: Vec<usize> = candidates.difference(&living).copied().collect();

        let base = start_of(&model.heap);
        let words = Marks::words_for(model.heap.len() * 16);
        let words: Vec<_> = (0..words).map(|_| AtomicU64::new(0)).collect();
        let marked_words = MarkedWords::none();
        let marks = Marks::new(&words, base, &marked_words);
        orphans.iter().for_each(|address| _ = marks.note(*address));
        let candidates = || -> Vec<usize> {
            all.iter().copied().filter(|start| marks.get(*start) == Mark::Candidate).collect()
        };
        // SAFETY: the model's memory is readable, and nobody else's.
        let came_to_the_end = unsafe { collector.mark(&model, &marks) };
        assert!(came_to_the_end);
        assert_eq!(candidates(), expected, "seed {seed}");
        found += expected.len();

        // Cut short at any time, it says so, and the next one finds the same.
        let asked = usize::MAX - model.patience.get();
        for patience in [1, 2, asked / 2, asked] {
            if (1..=asked).contains(&patience) {
                model.patience.set(patience);
                marks.settle();
                // SAFETY: as above.
                cut_short += usize::from(!unsafe { collector.mark(&model, &marks) });
                model.patience.set(usize::MAX);
                marks.settle();
                // SAFETY: as above.
                assert!(unsafe { collector.mark(&model, &marks) });
                assert_eq!(candidates(), expected, "seed {seed}, after {patience}");
            }
        }
    }
    assert!(found > 1000, "only {found} blocks were found in all");
    assert!(cut_short > 10, "cut short {cut_short} times");
}
