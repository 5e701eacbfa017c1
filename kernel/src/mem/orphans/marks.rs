//! A mark of two bits for each place in the heap where a block can begin: what a crash has noted, and what the collector knows.
//!
//! Between two collections a mark is [`Mark::Live`] or [`Mark::Noted`], and crashes note on any core. During one the collector alone
//! writes them, with every other core stopped. So there is room for all that crashes may leave; the marks lie in memory that the heap set
//! aside.

use crate::arch::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Blocks begin at multiples of this.
pub(in crate::mem) const GRANULE_BYTES: usize = 16;
/// Two bits each.
const PER_WORD: usize = 32;
/// The upper bit of each pair: set for candidates and what is noted.
const UPPER: u64 = 0xaaaa_aaaa_aaaa_aaaa;

/// What is known of the block that begins in a granule.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Mark {
    /// In use, as far as is known.
    Live = 0,
    /// Free: nothing in it counts.
    Free = 1,
    /// The dead could reach it; whether anything alive can is still to be found out.
    Candidate = 2,
    /// The dead had a pointer to here, which may be the middle of a block; or could reach the block that begins here, as something alive
    /// could. It is looked at again in each collection, until it is free.
    Noted = 3,
}

/// The marks of a stretch of memory.
pub(in crate::mem) struct Marks<'a> {
    words: &'a [AtomicU64],
    base: usize,
    marked_words: &'a MarkedWords,
}

/// How many of the first words anything may be marked in: all behind them are zero. So a collection takes as long as for what is in use, not as
/// for the memory there is.
pub(in crate::mem) struct MarkedWords(AtomicUsize);

impl MarkedWords {
    /// Nothing is marked.
    pub(in crate::mem) const fn none() -> Self {
        Self(AtomicUsize::new(0))
    }

    /// Something is marked in that word, which is written to afterwards.
    #[inline(always)]
    fn includes(&self, word: usize) {
        // Relaxed, as the marks are.
        if self.0.load(Ordering::Relaxed) <= word {
            self.0.fetch_max(word + 1, Ordering::Relaxed);
        }
    }
}

impl<'a> Marks<'a> {
    /// How many words the marks for this many bytes take.
    pub(in crate::mem) const fn words_for(bytes: usize) -> usize {
        bytes.div_ceil(GRANULE_BYTES * PER_WORD)
    }

    /// The marks of the memory at `base`; `words` has room for it, and `marked_words` is kept with them.
    pub(in crate::mem) fn new(words: &'a [AtomicU64], base: usize, marked_words: &'a MarkedWords) -> Self {
        Self { words, base, marked_words }
    }

    /// The words in which anything may be marked.
    fn marked(&self) -> &'a [AtomicU64] {
        self.words.get(..self.marked_words.0.load(Ordering::Relaxed)).unwrap_or(self.words)
    }

    /// All blocks are live.
    #[cfg(test)]
    pub(super) fn clear(&self) {
        for word in self.words {
            word.store(0, Ordering::Relaxed);
        }
        self.marked_words.0.store(0, Ordering::Relaxed);
    }

    /// Notes an address. Returns whether it is new. On any core, with preemption disabled: a collection between the two steps would leave the mark behind
    /// those that are looked at.
    // For the size of an image.
    #[inline(never)]
    pub(super) fn note(&self, address: usize) -> bool {
        let Some((word, shift)) = self.place_to_mark(address) else { return false };
        // Relaxed, here and below: between collections nothing else is read because of a mark; in one, the core that collects
        // has stopped all others, which orders what they did before.
        word.fetch_or((Mark::Noted as u64) << shift, Ordering::Relaxed) >> shift & 3 != Mark::Noted as u64
    }

    /// What the dead could reach, and what was noted and not looked at, is noted; all else is live. Whether anything is. At the end of a
    /// collection.
    pub(super) fn settle(&self) -> bool {
        let mut marked = 0;
        for (index, word) in self.marked().iter().enumerate() {
            let dead = word.load(Ordering::Relaxed) & UPPER;
            word.store(dead | dead >> 1, Ordering::Relaxed);
            if dead != 0 {
                marked = index + 1;
            }
        }
        self.marked_words.0.store(marked, Ordering::Relaxed);
        marked != 0
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

    /// The same, to mark something there.
    fn place_to_mark(&self, start: usize) -> Option<(&AtomicU64, usize)> {
        let place = self.place(start)?;
        self.marked_words.includes((start - self.base) / GRANULE_BYTES / PER_WORD);
        Some(place)
    }

    /// The mark of the block that begins there.
    pub(super) fn get(&self, start: usize) -> Mark {
        let Some((word, shift)) = self.place(start) else { return Mark::Live };
        match word.load(Ordering::Relaxed) >> shift & 3 {
            0 => Mark::Live,
            1 => Mark::Free,
            2 => Mark::Candidate,
            _ => Mark::Noted,
        }
    }

    /// Sets it.
    pub(super) fn set(&self, start: usize, mark: Mark) {
        let Some((word, shift)) = self.place_to_mark(start) else { return };
        let others = word.load(Ordering::Relaxed) & !(3 << shift);
        word.store(others | (mark as u64) << shift, Ordering::Relaxed);
    }

    /// Where the first candidate at or behind `from` begins.
    pub(in crate::mem) fn next_candidate(&self, from: usize) -> Option<usize> {
        self.next(from, |word| word & !(word << 1) & UPPER)
    }

    /// The first granule at or behind `from` that is noted.
    pub(super) fn next_noted(&self, from: usize) -> Option<usize> {
        self.next(from, |word| word & word << 1 & UPPER)
    }

    /// The first granule at or behind `from` of which `pick` leaves the upper bit.
    fn next(&self, from: usize, pick: impl Fn(u64) -> u64) -> Option<usize> {
        let words = self.marked();
        let granule = from.checked_sub(self.base)?.div_ceil(GRANULE_BYTES);
        let mut index = granule / PER_WORD;
        let mut from_bit = granule % PER_WORD * 2;
        loop {
            let word = pick(words.get(index)?.load(Ordering::Relaxed)) & (u64::MAX << from_bit);
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
    use super::{GRANULE_BYTES, Mark, MarkedWords, Marks};
    use crate::arch::atomic::AtomicU64;
    use alloc::vec::Vec;

    const ALL: [Mark; 4] = [Mark::Live, Mark::Free, Mark::Candidate, Mark::Noted];

    /// All granules from there on that `next` finds.
    fn found(next: impl Fn(usize) -> Option<usize>) -> Vec<usize> {
        core::iter::successors(next(0x4000), |last| next(last + 1)).collect()
    }

    #[test]
    fn marks_are_kept_apart_and_found() {
        let words: Vec<_> = (0..4).map(|_| AtomicU64::new(u64::MAX)).collect();
        let marked_words = MarkedWords::none();
        let marks = Marks::new(&words, 0x4000, &marked_words);
        marks.clear();
        let all: Vec<_> = (0..128).map(|i| 0x4000 + i * GRANULE_BYTES).collect();
        for (index, start) in all.iter().enumerate() {
            marks.set(*start, Mark::Candidate);
            marks.set(*start, ALL[index % 4]);
        }
        for (index, start) in all.iter().enumerate() {
            assert_eq!(marks.get(*start), ALL[index % 4]);
        }
        let those_of = |mark: usize| all.iter().copied().skip(mark).step_by(4).collect::<Vec<_>>();
        assert_eq!(found(|from| marks.next_candidate(from)), those_of(2));
        assert_eq!(found(|from| marks.next_noted(from)), those_of(3));
        assert_eq!(marks.get(0x3000), Mark::Live, "outside");
        assert_eq!(marks.get(0x4000 + marks.bytes()), Mark::Live, "outside");

        assert!(marks.settle());
        let settled = [Mark::Live, Mark::Live, Mark::Noted, Mark::Noted];
        for (index, start) in all.iter().enumerate() {
            assert_eq!(marks.get(*start), settled[index % 4]);
        }
        marks.clear();
        assert!(!marks.settle());
    }

    #[test]
    fn what_is_noted_is_new_once() {
        let words = [const { AtomicU64::new(0) }; 2];
        let marked_words = MarkedWords::none();
        let marks = Marks::new(&words, 0x4000, &marked_words);
        assert!(marks.note(0x4037) && !marks.note(0x4030) && marks.note(0x4040));
        assert_eq!(found(|from| marks.next_noted(from)), [0x4030, 0x4040]);
        assert!(!marks.note(0x3fff) && !marks.note(0x4000 + marks.bytes()), "outside");
    }

    #[test]
    fn it_is_known_how_far_they_reach() {
        let words = [const { AtomicU64::new(0) }; 8];
        let marked_words = MarkedWords::none();
        let marks = Marks::new(&words, 0x4000, &marked_words);
        let bytes_per_word = GRANULE_BYTES * super::PER_WORD;
        let of_word = |word: usize| 0x4000 + word * bytes_per_word;
        assert!(marks.marked().is_empty() && marks.next_noted(0x4000).is_none());
        assert!(marks.note(of_word(2)));
        marks.set(of_word(5), Mark::Free);
        marks.set(of_word(3), Mark::Candidate);
        assert_eq!(marks.marked().len(), 6);
        // What is free is not marked any more.
        assert!(marks.settle());
        assert_eq!(marks.marked().len(), 4);
        assert_eq!(found(|from| marks.next_noted(from)), [of_word(2), of_word(3)]);
        marks.set(of_word(2), Mark::Live);
        marks.set(of_word(3), Mark::Live);
        assert!(!marks.settle());
        assert!(marks.marked().is_empty());
        // The last there is.
        assert!(marks.note(of_word(8) - 1) && !marks.note(of_word(8)));
        assert_eq!(marks.marked().len(), 8);
    }
}
