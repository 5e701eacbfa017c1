//! Where large blocks begin, and how long they are.
//!
//! The heap's memory is looked at in granules of 2 KiB, with an entry of four bytes for each. Every block that the central
//! heap gives out is longer than a granule, so at most one begins in each. An entry says where, and how many bytes the
//! block has. Of a block of 32 MiB or more the next two entries hold the length; no other block can begin in those.
//!
//! So a block costs a few stores, and an address in its middle a search for the last entry below that has something: by
//! [`BitTree`], in a few steps however long the block is. Only [`walk`](super::walk) searches.

use core::alloc::Layout;
use core::ptr::NonNull;

use super::bit_tree::BitTree;
use super::reserved::Reserved;
use super::span_table::UNIT_BYTES;
use crate::arch::atomic::{AtomicU32, AtomicUsize, Ordering};

/// Bytes of a granule. Every block in the table is longer.
pub(super) const GRANULE_BYTES: usize = 2048;

/// Entries are a place, one more than the units before the block's beginning, above a length in so many bits.
const LENGTH_BITS: u32 = 25;
const LENGTH_MASK: usize = (1 << LENGTH_BITS) - 1;
/// The length is in the next two entries.
const ELSEWHERE: usize = LENGTH_MASK;

const _: () = assert!((GRANULE_BYTES / UNIT_BYTES + 1) << LENGTH_BITS <= 1 << 32);

/// The table. It is changed under the central heap's lock.
pub(super) struct LargeTable {
    /// Address of the first granule; a multiple of the unit.
    base: AtomicUsize,
    granules: Reserved<AtomicU32>,
    /// The granules in which a block begins.
    begun: BitTree,
}

impl LargeTable {
    pub(super) const fn empty() -> Self {
        Self { base: AtomicUsize::new(0), granules: Reserved::empty(), begun: BitTree::empty() }
    }

    /// The granules of this many bytes.
    fn granules(length_bytes: usize) -> usize {
        length_bytes / GRANULE_BYTES + 1
    }

    /// The memory of the tree and the entries, and where in it the entries begin.
    fn parts(length_bytes: usize) -> Option<(Layout, usize)> {
        let granules = Self::granules(length_bytes);
        BitTree::layout(granules)?.extend(Layout::array::<AtomicU32>(granules).ok()?).ok()
    }

    /// The memory that the table for this many bytes takes.
    pub(super) fn layout(length_bytes: usize) -> Option<Layout> {
        Self::parts(length_bytes)?.0.align_to(UNIT_BYTES).ok()
    }

    /// Makes the table for the memory at `base`, which is a multiple of the unit.
    ///
    /// # Safety
    /// `memory` has [`Self::layout`] and is used for nothing else. Called once, before anything else.
    pub(super) unsafe fn init(&self, memory: NonNull<u8>, base: usize, length_bytes: usize) {
        let Some((_, entries)) = Self::parts(length_bytes) else { return };
        let granules = Self::granules(length_bytes);
        // Relaxed, here and below: as in `Reserved`.
        self.base.store(base, Ordering::Relaxed);
        // SAFETY: by contract; the entries lie behind the tree.
        unsafe {
            self.begun.init(memory, granules);
            self.granules.init(memory.add(entries), granules, || AtomicU32::new(0));
        }
    }

    fn read(&self, granule: usize) -> (usize, usize) {
        // Relaxed, here and below: whoever has the central heap's lock is alone.
        let entry = self.granules.get(granule).map_or(0, |entry| entry.load(Ordering::Relaxed)) as usize;
        (entry >> LENGTH_BITS, entry & LENGTH_MASK)
    }

    fn write(&self, granule: usize, place: usize, length: usize) {
        if let Some(entry) = self.granules.get(granule) {
            entry.store((place << LENGTH_BITS | length) as u32, Ordering::Relaxed);
        }
    }

    fn granule_of(&self, address: usize) -> (usize, usize) {
        let offset = address.wrapping_sub(self.base.load(Ordering::Relaxed));
        (offset / GRANULE_BYTES, offset % GRANULE_BYTES)
    }

    /// Notes a block. It is longer than a granule, though `bytes` may say that less of it is used.
    pub(super) fn insert(&self, block: NonNull<u8>, bytes: usize) {
        let (granule, offset) = self.granule_of(block.as_ptr().expose_provenance());
        let place = offset / UNIT_BYTES + 1;
        self.begun.insert(granule);
        if bytes < ELSEWHERE {
            self.write(granule, place, bytes);
            return;
        }
        self.write(granule, place, ELSEWHERE);
        self.write(granule + 1, 0, bytes & LENGTH_MASK);
        self.write(granule + 2, 0, bytes >> LENGTH_BITS);
    }

    /// Forgets a block.
    pub(super) fn remove(&self, block: NonNull<u8>) {
        let (granule, _) = self.granule_of(block.as_ptr().addr());
        if self.read(granule).1 == ELSEWHERE {
            self.write(granule + 1, 0, 0);
            self.write(granule + 2, 0, 0);
        }
        self.write(granule, 0, 0);
        self.begun.remove(granule);
    }

    /// The block that begins exactly there.
    pub(super) fn begins_at(&self, address: usize) -> Option<(usize, usize)> {
        self.in_granule(self.granule_of(address).0).filter(|(start, _)| *start == address)
    }

    /// The block that begins in the granule.
    fn in_granule(&self, granule: usize) -> Option<(usize, usize)> {
        let (place, length) = self.read(granule);
        let start =
            self.base.load(Ordering::Relaxed) + granule * GRANULE_BYTES + place.checked_sub(1)? * UNIT_BYTES;
        if length != ELSEWHERE {
            return Some((start, length));
        }
        Some((start, self.read(granule + 1).1 | self.read(granule + 2).1 << LENGTH_BITS))
    }

    /// Start and length of the block that the address is in.
    pub(super) fn find(&self, address: usize) -> Option<(usize, usize)> {
        if address < self.base.load(Ordering::Relaxed) {
            return None;
        }
        let (granule, _) = self.granule_of(address);
        if granule >= self.granules.count() {
            return None;
        }
        let starts_by = |block: &(usize, usize)| block.0 <= address;
        // The block that begins in the address's own granule may begin behind it.
        let here = self.in_granule(granule).filter(starts_by);
        let before = || self.in_granule(self.begun.last_until(granule.checked_sub(1)?)?);
        here.or_else(before).filter(|(start, bytes)| address - start < *bytes)
    }

    /// Calls for every block, in the order of their addresses.
    pub(super) fn for_each(&self, mut tell: impl FnMut(usize, usize)) {
        self.begun.for_each(|granule| {
            if let Some((start, bytes)) = self.in_granule(granule) {
                tell(start, bytes);
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::LargeTable;
    use crate::mem::heap::Region;
    use core::ptr::{self, NonNull};

    /// Next to one another, at the borders of granules, and so long that the length is elsewhere.
    #[test]
    fn every_address_in_a_block_leads_to_it() {
        const BASE: usize = 1 << 20;
        let length = 80 << 20;
        let table_bytes = LargeTable::layout(length).expect("valid").size();
        let region = Region::new(table_bytes);
        let table = LargeTable::empty();
        // SAFETY: the region is that long, and used for nothing else.
        unsafe { table.init(region.start(), BASE, length) };
        let mut blocks = Vec::new();
        let mut start = BASE + 32;
        for bytes in [2049, 2080, 4096, 33 << 20, 2100, (32 << 20) - 1, 3000, 100_000, 2050] {
            blocks.push((start, bytes));
            start += (bytes + 1usize).next_multiple_of(32);
        }
        let pointer =
            |start: usize| NonNull::new(ptr::without_provenance_mut::<u8>(start)).expect("not null");
        for (start, bytes) in &blocks {
            table.insert(pointer(*start), *bytes);
        }
        let mut told = Vec::new();
        table.for_each(|start, bytes| told.push((start, bytes)));
        assert_eq!(told, blocks);
        for block in &blocks {
            let (start, bytes) = *block;
            for inside in [0, 1, bytes / 2, bytes - 1] {
                assert_eq!(table.find(start + inside), Some(*block));
            }
            assert_ne!(table.find(start + bytes), Some(*block), "behind a block");
            assert_ne!(table.find(start - 1), Some(*block), "before a block");
        }
        assert_eq!(table.find(BASE), None);
        assert_eq!(table.find(BASE - 1), None);
        assert_eq!(table.find(usize::MAX), None);
        for block in &blocks {
            table.remove(pointer(block.0));
            assert_eq!(table.find(block.0 + 5), None);
        }
        table.for_each(|start, _| panic!("{start:#x} is left"));
    }
}
