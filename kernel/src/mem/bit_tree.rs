//! A set of numbers up to a fixed one, in which the largest that is not above a given one is found in a few steps.
//!
//! The lowest level has a bit for each number. A level above has a bit for each word of the level below, which says whether
//! anything is set in it; the highest is one word. So a search goes up until a word has something at or below, and down
//! again: at most two words of each level, of which there are four for a heap of 32 GiB.
//!
//! It is changed by one at a time. How that is ensured is up to its owner.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::reserved::Reserved;
use crate::arch::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Bits of a word.
const BITS: usize = u64::BITS as usize;
/// As many levels as any memory needs.
const MOST_LEVELS: usize = usize::BITS.div_ceil(BITS.ilog2()) as usize;

/// The set.
pub(super) struct BitTree {
    /// The levels one behind the other, the lowest first.
    words: Reserved<AtomicU64>,
    /// Where each level begins among them.
    begins: [AtomicUsize; MOST_LEVELS],
    levels: AtomicUsize,
}

impl BitTree {
    pub(super) const fn empty() -> Self {
        Self {
            words: Reserved::empty(),
            begins: [const { AtomicUsize::new(0) }; MOST_LEVELS],
            levels: AtomicUsize::new(0),
        }
    }

    /// How many words each level has for numbers below `limit`, the lowest level first.
    fn lengths(limit: usize) -> impl Iterator<Item = usize> {
        let length = |numbers: usize| numbers.div_ceil(BITS).max(1);
        core::iter::successors(Some(length(limit)), move |&below| (below > 1).then(|| length(below)))
    }

    /// The memory that it takes for numbers below `limit`.
    pub(super) fn layout(limit: usize) -> Option<Layout> {
        Layout::array::<AtomicU64>(Self::lengths(limit).sum()).ok()
    }

    /// Makes it for numbers below `limit`, with none in it.
    ///
    /// # Safety
    /// `memory` has [`Self::layout`] and is used for nothing else. Called once, before anything else.
    pub(super) unsafe fn init(&self, memory: NonNull<u8>, limit: usize) {
        let (mut words, mut levels) = (0, 0);
        for (begin, length) in self.begins.iter().zip(Self::lengths(limit)) {
            // Relaxed, here and below: as in `Reserved`.
            begin.store(words, Ordering::Relaxed);
            words += length;
            levels += 1;
        }
        self.levels.store(levels, Ordering::Relaxed);
        // SAFETY: the caller promised memory of the layout, used for nothing else.
        unsafe { self.words.init(memory, words, || AtomicU64::new(0)) };
    }

    fn levels(&self) -> usize {
        self.levels.load(Ordering::Relaxed)
    }

    fn word(&self, level: usize, index: usize) -> Option<&AtomicU64> {
        self.words.get(self.begins.get(level)?.load(Ordering::Relaxed) + index)
    }

    fn read(&self, level: usize, index: usize) -> u64 {
        // Relaxed, here and below: see the opening.
        self.word(level, index).map_or(0, |word| word.load(Ordering::Relaxed))
    }

    /// Puts a number in.
    pub(super) fn insert(&self, number: usize) {
        let mut number = number;
        for level in 0..self.levels() {
            let Some(word) = self.word(level, number / BITS) else { return };
            let before = word.load(Ordering::Relaxed);
            word.store(before | 1 << (number % BITS), Ordering::Relaxed);
            if before != 0 {
                return;
            }
            number /= BITS;
        }
    }

    /// Takes a number out.
    pub(super) fn remove(&self, number: usize) {
        let mut number = number;
        for level in 0..self.levels() {
            let Some(word) = self.word(level, number / BITS) else { return };
            let after = word.load(Ordering::Relaxed) & !(1 << (number % BITS));
            word.store(after, Ordering::Relaxed);
            if after != 0 {
                return;
            }
            number /= BITS;
        }
    }

    /// The largest number in it that is `number`, which is below the limit, or below that.
    pub(super) fn last_until(&self, number: usize) -> Option<usize> {
        // The last bit of a level that is looked at.
        let mut last = number;
        for level in 0..self.levels() {
            let index = last / BITS;
            let found = self.read(level, index) & (u64::MAX >> (BITS - 1 - last % BITS));
            if found != 0 {
                return Some(self.last_below(level, index * BITS + last_bit(found)));
            }
            // One level up: the words that are wholly before this one.
            last = index.checked_sub(1)?;
        }
        None
    }

    /// The largest number under a bit that is set in a level.
    fn last_below(&self, level: usize, bit: usize) -> usize {
        (0..level).rev().fold(bit, |index, level| index * BITS + last_bit(self.read(level, index)))
    }

    /// Calls for every number in it, in order.
    pub(super) fn for_each(&self, mut tell: impl FnMut(usize)) {
        if let Some(highest) = self.levels().checked_sub(1) {
            self.for_each_in(highest, 0, &mut tell);
        }
    }

    /// Calls for every number under a word.
    fn for_each_in(&self, level: usize, index: usize, tell: &mut impl FnMut(usize)) {
        let mut bits = self.read(level, index);
        while bits != 0 {
            let bit = index * BITS + bits.trailing_zeros() as usize;
            bits &= bits - 1;
            match level.checked_sub(1) {
                Some(below) => self.for_each_in(below, bit, tell),
                None => tell(bit),
            }
        }
    }
}

/// The highest bit that is set; something is.
fn last_bit(word: u64) -> usize {
    BITS - 1 - word.leading_zeros() as usize
}

#[cfg(test)]
mod tests {
    use super::BitTree;
    use crate::checks::Random;
    use crate::mem::heap::Region;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;

    /// Numbers come and go, dense and sparse, in sets of one level to four: against a set that is known to be right.
    #[test]
    fn it_agrees_with_a_set() {
        for (limit, levels) in [(1, 1), (64, 1), (65, 2), (4096, 2), (4097, 3), (300_000, 4)] {
            let tree = BitTree::empty();
            assert_eq!(tree.last_until(0), None, "of a set without memory");
            let region = Region::new(BitTree::layout(limit).expect("valid").size());
            // SAFETY: the region is that long, and used for nothing else.
            unsafe { tree.init(region.start(), limit) };
            assert_eq!(tree.levels(), levels, "levels for numbers below {limit}");
            let (random, mut model) = (Random::new(limit as u64, 1), BTreeSet::new());
            for step in 0..4000 {
                // Now and then nearly all go.
                let number = random.below(if step % 3 == 0 { limit.min(200) } else { limit });
                if random.below(10) < if step % 1000 < 500 { 7 } else { 1 } {
                    tree.insert(number);
                    model.insert(number);
                } else if let Some(&there) = model.range(number..).next().or_else(|| model.first()) {
                    tree.remove(there);
                    model.remove(&there);
                }
                for asked in [0, number, random.below(limit), limit - 1] {
                    assert_eq!(tree.last_until(asked), model.range(..=asked).next_back().copied());
                }
                if step % 500 == 0 {
                    let mut told = Vec::new();
                    tree.for_each(|number| told.push(number));
                    assert!(told.iter().eq(model.iter()), "all that is in it, in order");
                }
            }
            model.iter().for_each(|number| tree.remove(*number));
            assert_eq!(tree.last_until(limit - 1), None);
            tree.for_each(|number| panic!("{number} is left"));
        }
    }
}
