//! Which blocks of the heap only the dead could reach: a conservative mark phase, in two steps.
//!
//! 1. From what the dead left behind, which is noted among the marks, every block that can be reached becomes a *candidate*.
//! 2. From everything that lives (statics, stacks, registers, and the blocks that are no candidates) every candidate that
//!    can be reached is alive, or seems so, and so is what can be reached from it. It is *noted* for the next collection: when a word that
//!    only looked like a pointer has gone, nothing else may be known that leads there from the dead.
//!
//! Nobody has a pointer to what is still a candidate. Making such a pointer would need one to begin with, so it stays
//! that way even when the cores run on, and the memory can be given back.
//!
//! Nothing is known of types. Whatever looks like an address in a block, its middle included, counts as a pointer to it, so
//! too much may be kept. For what lives, no pointer must ever be missed. So words are read at every byte, because a
//! packed structure may hold a pointer anywhere, and their two highest bytes are ignored, because a pointer may carry a
//! tag there. At addresses that are not multiples of eight, only a pointer to the beginning of a block counts, as boxes
//! and vectors have: where memory begins at 0, small numbers look like addresses all too often when shifted. For the
//! dead, aligned words are enough, because what is missed merely stays allocated. After Boehm and Weiser, "Garbage
//! collection in an uncooperative environment" (1988).
//!
//! Not here: what the roots are, and how the cores are stopped.

use core::ops::Range;

use super::marks::{Mark, Marks};
use super::prefix::Prefix;

/// Where a block of the heap lies.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::mem) struct Extent {
    pub(in crate::mem) start: usize,
    pub(in crate::mem) bytes: usize,
}

/// The memory that is looked at. It does not change meanwhile.
pub(in crate::mem) trait World {
    /// The block that holds the address, free or in use.
    fn block_at(&self, address: usize) -> Option<Extent>;
    /// The block that begins exactly there, free or in use.
    fn block_from(&self, address: usize) -> Option<Extent>;
    /// Shows every free block that [`Self::block_at`] would find, and those in use in which nothing counts.
    fn each_free(&self, visit: &mut dyn FnMut(Extent));
    /// Shows every block in use, and perhaps free ones.
    fn each_block(&self, visit: &mut dyn FnMut(Extent));
    /// Shows every stretch of memory outside of the heap where pointers into it may be, at multiples of eight bytes.
    fn each_root(&self, visit: &mut dyn FnMut(Range<usize>));
    /// Whether looking has taken too long. Called now and then.
    fn is_over(&self) -> bool;
}

/// A pointer may carry a tag above these bits.
pub(super) const ADDRESS_BITS: u64 = (1 << 48) - 1;
const WORD_BYTES: usize = 8;
/// This many bytes are looked through before the clock is read.
const STRETCH_BYTES: usize = 64 << 10;
/// Blocks that wait to be looked into. If there are more, all are looked through once more.
pub(super) const MOST_WAITING: usize = 1024;

/// Blocks that are to be looked into. Their addresses are kept inverted, because this list lies where roots are looked
/// for.
struct Waiting {
    blocks: [Extent; MOST_WAITING],
    count: usize,
    /// How many there was no room for.
    left_out: usize,
}

impl Waiting {
    fn push(&mut self, block: Extent) {
        match self.blocks.get_mut(self.count) {
            Some(place) => {
                *place = Extent { start: !block.start, ..block };
                self.count += 1;
            }
            None => self.left_out += 1,
        }
    }

    fn pop(&mut self) -> Option<Extent> {
        self.count = self.count.checked_sub(1)?;
        self.blocks.get(self.count).map(|block| Extent { start: !block.start, ..*block })
    }
}

/// The state of a collection; large, so it is made once, in place.
pub(in crate::mem) struct Collector {
    waiting: Waiting,
}

impl Collector {
    pub(in crate::mem) const fn new() -> Self {
        const NONE: Extent = Extent { start: 0, bytes: 0 };
        Self { waiting: Waiting { blocks: [NONE; MOST_WAITING], count: 0, left_out: 0 } }
    }

    /// Marks what only the dead could reach as candidates, and what else they could reach as noted, from what was noted before. Returns
    /// whether it came to the end; if it took too long, the marks mean nothing but that what is noted, or a candidate, is to be noted:
    /// see [`Marks::settle`].
    ///
    /// # Safety
    /// What the world shows as roots and blocks is readable, in whole words, and nobody writes to it meanwhile.
    pub(in crate::mem) unsafe fn mark(&mut self, world: &impl World, marks: &Marks<'_>) -> bool {
        (self.waiting.count, self.waiting.left_out) = (0, 0);
        world.each_free(&mut |block| marks.set(block.start, Mark::Free));
        let (waiting, prefix) = (&mut self.waiting, Prefix::of(marks.base(), marks.bytes()));
        let mut search =
            Search { world, marks, prefix, waiting, from: Reach::Dead, looked: 0, is_over: false };
        let mut from = marks.base();
        while let Some(address) = marks.next_noted(from).filter(|_| !search.is_over) {
            from = address + 1;
            // It may be the middle of a block, of which the beginning is marked.
            marks.set(address, Mark::Live);
            search.reached(address);
            search.count(WORD_BYTES);
        }
        // SAFETY: by contract, here and below.
        unsafe { search.finish() };

        search.from = Reach::Living;
        // SAFETY: as above.
        world.each_root(&mut |range| unsafe { search.look_through(range) });
        world.each_block(&mut |block| {
            if !search.is_over && marks.get(block.start) == Mark::Live {
                // SAFETY: as above.
                unsafe { search.look_into(block) };
            }
        });
        // SAFETY: as above.
        unsafe { search.finish() };
        !search.is_over
    }
}

/// From where one of the steps searches.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    Dead,
    Living,
}

impl Reach {
    /// What a block that has this mark is marked when it is reached; `None` if it stays as it is.
    fn marks(self, mark: Mark) -> Option<Mark> {
        match (self, mark) {
            (Self::Dead, Mark::Live | Mark::Noted) | (Self::Living, Mark::Candidate) => Some(self.found()),
            _ => None,
        }
    }

    /// How a block is marked that was reached.
    fn found(self) -> Mark {
        match self {
            Self::Dead => Mark::Candidate,
            Self::Living => Mark::Noted,
        }
    }
}

/// One of the steps: blocks that are reached are marked, and looked into.
struct Search<'a, W> {
    world: &'a W,
    marks: &'a Marks<'a>,
    /// Of the addresses that have marks.
    prefix: Prefix,
    waiting: &'a mut Waiting,
    from: Reach,
    /// Bytes looked through since the clock was read.
    looked: usize,
    /// It took too long: nothing is looked through any more.
    is_over: bool,
}

impl<W: World> Search<'_, W> {
    /// Something points to `address`, or seems to.
    #[inline(always)]
    fn reached(&mut self, address: usize) {
        if address.wrapping_sub(self.marks.base()) >= self.marks.bytes() {
            return;
        }
        self.reached_in_heap(address, true);
    }

    /// As `reached`, of an address in the heap; where only a pointer to the beginning of a block counts, not `anywhere` in one.
    // Once, for the size of an image.
    #[inline(never)]
    fn reached_in_heap(&mut self, address: usize, anywhere: bool) {
        let block = if anywhere { self.world.block_at(address) } else { self.world.block_from(address) };
        if let Some(block) = block
            && let Some(mark) = self.from.marks(self.marks.get(block.start))
        {
            self.marks.set(block.start, mark);
            self.waiting.push(block);
        }
    }

    /// Looks into all that was reached, until there is no more.
    ///
    /// # Safety
    /// As for [`Collector::mark`].
    unsafe fn finish(&mut self) {
        loop {
            while let Some(block) = self.waiting.pop() {
                // SAFETY: as the caller of `mark` promised.
                unsafe { self.look_into(block) };
            }
            if core::mem::take(&mut self.waiting.left_out) == 0 || self.is_over {
                return;
            }
            // Some were marked and not looked into. It is not known which, so all are looked into; each round marks
            // more of them.
            self.world.each_block(&mut |block| {
                if self.marks.get(block.start) == self.from.found() {
                    // SAFETY: as the caller of `mark` promised.
                    unsafe { self.look_into(block) };
                    while let Some(block) = self.waiting.pop() {
                        // SAFETY: as the caller of `mark` promised.
                        unsafe { self.look_into(block) };
                    }
                }
            });
        }
    }

    /// # Safety
    /// As for [`Collector::mark`].
    unsafe fn look_into(&mut self, block: Extent) {
        // A block's last bytes that fill no word hold no pointer.
        let range = block.start..block.start + block.bytes / WORD_BYTES * WORD_BYTES;
        // SAFETY: as the caller of `mark` promised.
        unsafe { self.look_through(range) }
    }

    /// # Safety
    /// As for [`Collector::mark`]; the range is one of the world's.
    unsafe fn look_through(&mut self, range: Range<usize>) {
        let at_every_byte = self.from == Reach::Living;
        let mut before = 0;
        let mut begin = range.start;
        while begin < range.end && !self.is_over {
            let end = range.end.min(begin + STRETCH_BYTES);
            for address in (begin..end).step_by(WORD_BYTES) {
                // SAFETY: by contract it can be read. Volatile: to the compiler it may be anything, and of any type.
                let word = unsafe { core::ptr::with_exposed_provenance::<u64>(address).read_volatile() };
                if word | before != 0 {
                    self.reached((word & ADDRESS_BITS) as usize);
                    if at_every_byte {
                        self.look_between(before, word);
                    }
                }
                before = word;
            }
            self.count(end - begin);
            begin = end;
        }
        // What begins in the last word and is shorter than one: the six bytes of an address may end with it.
        if at_every_byte && before != 0 {
            self.look_between(before, 0);
        }
    }

    /// So many bytes were looked through.
    fn count(&mut self, bytes: usize) {
        self.looked += bytes;
        if self.looked >= STRETCH_BYTES {
            self.looked = 0;
            self.is_over |= self.world.is_over();
        }
    }

    /// The seven words that begin in one word and end in the next.
    #[inline(always)]
    fn look_between(&mut self, before: u64, word: u64) {
        let which = self.prefix.which_may_begin_between(before, word);
        if which != 0 {
            self.look_at_those_between(which, before, word);
        }
    }

    #[inline(never)]
    fn look_at_those_between(&mut self, mut which: u64, before: u64, word: u64) {
        while which != 0 {
            let bits = which.trailing_zeros() + 1;
            which &= which - 1;
            let address = ((before >> bits | word << (64 - bits)) & ADDRESS_BITS) as usize;
            if address.wrapping_sub(self.marks.base()) < self.marks.bytes() {
                self.reached_in_heap(address, false);
            }
        }
    }
}

#[cfg(test)]
mod tests;
