//! Two marks for each place in the heap where a block can begin: what the collector knows of it.
//!
//! The collector alone writes them, with every other core stopped; the marks lie in memory that the heap set aside.

use crate::arch::atomic::{AtomicU64, Ordering};

/// Blocks begin at multiples of this.
pub(in crate::mem) const GRANULE_BYTES: usize = 16;
/// Two bits each.
const PER_WORD: usize = 32;

/// What is known of the block that begins in a granule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// In use, as far as is known.
    Live = 0,
    /// Free: nothing in it counts.
    Free = 1,
    /// The dead could reach it; whether anything alive can is still to be found out.
    Candidate = 2,
}

/// The marks of a stretch of memory.
pub(in crate::mem) struct Marks<'a> {
    words: &'a [AtomicU64],
    base: usize,
}

impl<'a> Marks<'a> {
    /// How many words the marks for this many bytes take.
    pub(in crate::mem) const fn words_for(bytes: usize) -> usize {
        bytes.div_ceil(GRANULE_BYTES * PER_WORD)
    }

    /// The marks of the memory at `base`; `words` has room for it.
    pub(in crate::mem) fn new(words: &'a [AtomicU64], base: usize) -> Self {
        Self { words, base }
    }

    /// All blocks are live.
    pub(super) fn clear(&self) {
        for word in self.words {
            // Relaxed, here and below: one core uses the marks at a time, see the file's head.
            word.store(0, Ordering::Relaxed);
        }
    }

    /// How far an address can lie behind the base.
    pub(super) fn bytes(&self) -> usize {
        self.words.len() * PER_WORD * GRANULE_BYTES
    }

    /// Where the memory begins.
    pub(super) fn base(&self) -> usize {
        self.base
    }

    fn place(&self, start: usize) -> Option<(&AtomicU64, usize)> {
        let granule = start.checked_sub(self.base)? / GRANULE_BYTES;
        Some((self.words.get(granule / PER_WORD)?, granule % PER_WORD * 2))
    }

    /// The mark of the block that begins there.
    pub(super) fn get(&self, start: usize) -> Mark {
        let Some((word, shift)) = self.place(start) else { return Mark::Live };
        match word.load(Ordering::Relaxed) >> shift & 3 {
            0 => Mark::Live,
            1 => Mark::Free,
            _ => Mark::Candidate,
        }
    }

    /// Sets it.
    pub(super) fn set(&self, start: usize, mark: Mark) {
        let Some((word, shift)) = self.place(start) else { return };
        let others = word.load(Ordering::Relaxed) & !(3 << shift);
        word.store(others | (mark as u64) << shift, Ordering::Relaxed);
    }

    /// Where the first candidate at or behind `from` begins.
    pub(in crate::mem) fn next_candidate(&self, from: usize) -> Option<usize> {
        /// The upper bit of each pair.
        const CANDIDATES: u64 = 0xaaaa_aaaa_aaaa_aaaa;
        let granule = from.checked_sub(self.base)?.div_ceil(GRANULE_BYTES);
        let mut index = granule / PER_WORD;
        let mut from_bit = granule % PER_WORD * 2;
        loop {
            let word = self.words.get(index)?.load(Ordering::Relaxed) & CANDIDATES & (u64::MAX << from_bit);
            if word != 0 {
                let granule = index * PER_WORD + word.trailing_zeros() as usize / 2;
                return Some(self.base + granule * GRANULE_BYTES);
            }
            (index, from_bit) = (index + 1, 0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{GRANULE_BYTES, Mark, Marks};
    use crate::arch::atomic::AtomicU64;
    use alloc::vec::Vec;

    #[test]
    fn marks_are_kept_apart_and_candidates_found() {
        let words: Vec<_> = (0..4).map(|_| AtomicU64::new(u64::MAX)).collect();
        let marks = Marks::new(&words, 0x4000);
        marks.clear();
        let all: Vec<_> = (0..128).map(|i| 0x4000 + i * GRANULE_BYTES).collect();
        for (index, start) in all.iter().enumerate() {
            let mark = [Mark::Live, Mark::Free, Mark::Candidate][index % 3];
            marks.set(*start, Mark::Candidate);
            marks.set(*start, mark);
        }
        for (index, start) in all.iter().enumerate() {
            assert_eq!(marks.get(*start), [Mark::Live, Mark::Free, Mark::Candidate][index % 3]);
        }
        let mut found = Vec::new();
        let mut from = 0x4000;
        while let Some(start) = marks.next_candidate(from) {
            found.push(start);
            from = start + 1;
        }
        let expected: Vec<_> = all.iter().copied().skip(2).step_by(3).collect();
        assert_eq!(found, expected);
        assert_eq!(marks.get(0x3000), Mark::Live, "outside");
        assert_eq!(marks.get(0x4000 + marks.bytes()), Mark::Live, "outside");
    }
}
