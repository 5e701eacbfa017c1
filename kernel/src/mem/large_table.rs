//! Where large blocks begin, and how long they are.
//!
//! The heap's memory is looked at in granules of 2 KiB, with an entry of four bytes for each. Every block that the central
//! heap gives out is longer than a granule, so at most one begins in each. An entry says where, and how many bytes the
//! block has. Of a block of 32 MiB or more the next two entries hold the length; no other block can begin in those.
//!
//! So a block costs a few stores, and its address costs a search downwards: an entry for every 2 KiB down to the block's
//! beginning, or for every MiB in which none begins. Only [`walk`](super::walk) searches.

use core::alloc::Layout;
use core::ptr::NonNull;

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

/// Granules of a section, for each of which one more entry counts the blocks that begin in it.
const SECTION: usize = 512;

const _: () = assert!((GRANULE_BYTES / UNIT_BYTES + 1) << LENGTH_BITS <= 1 << 32);

/// The table. It is changed under the central heap's lock.
pub(super) struct LargeTable {
    /// Address of the first granule; a multiple of the unit.
    base: AtomicUsize,
    granules: Reserved<AtomicU32>,
    sections: Reserved<AtomicU32>,
}

impl LargeTable {
    pub(super) const fn empty() -> Self {
        Self { base: AtomicUsize::new(0), granules: Reserved::empty(), sections: Reserved::empty() }
    }

    /// The entries for this many bytes: of granules, then of sections.
    fn counts(length_bytes: usize) -> (usize, usize) {
        let granules = length_bytes / GRANULE_BYTES + 1;
        (granules, granules.div_ceil(SECTION))
    }

    /// The memory that the table for this many bytes takes.
    pub(super) fn layout(length_bytes: usize) -> Option<Layout> {
        let (granules, sections) = Self::counts(length_bytes);
        Layout::array::<AtomicU32>(granules + sections).ok()?.align_to(UNIT_BYTES).ok()
    }

    /// Makes the table for the memory at `base`, which is a multiple of the unit.
    ///
    /// # Safety
    /// `entries` has [`Self::layout`] and is used for nothing else. Called once, before anything else.
    pub(super) unsafe fn init(&self, entries: NonNull<u8>, base: usize, length_bytes: usize) {
        let (granules, sections) = Self::counts(length_bytes);
        let none = || AtomicU32::new(0);
        // Relaxed, here and below: as in `Reserved`.
        self.base.store(base, Ordering::Relaxed);
        // SAFETY: by contract; one table lies behind the other.
        unsafe {
            self.granules.init(entries, granules, none);
            self.sections.init(entries.cast::<AtomicU32>().add(granules).cast(), sections, none);
        }
    }

    /// How many blocks begin in a granule's section.
    fn in_section(&self, granule: usize) -> &AtomicU32 {
        self.sections.get(granule / SECTION).expect("a granule of the heap, each of which has a section")
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
        let count = self.in_section(granule);
        count.store(count.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
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
        let count = self.in_section(granule);
        count.store(count.load(Ordering::Relaxed) - 1, Ordering::Relaxed);
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
        // The last that begins at the address or below.
        let mut next = granule + 1;
        while let Some(granule) = next.checked_sub(1) {
            if self.in_section(granule).load(Ordering::Relaxed) == 0 {
                next = granule / SECTION * SECTION;
                continue;
            }
            if let Some((start, bytes)) = self.in_granule(granule).filter(|(start, _)| *start <= address) {
                return (address - start < bytes).then_some((start, bytes));
            }
            next = granule;
        }
        None
    }

    /// Calls for every block, in the order of their addresses.
    pub(super) fn for_each(&self, mut tell: impl FnMut(usize, usize)) {
        let granules = self.granules.count();
        for section in (0..granules).step_by(SECTION) {
            if self.in_section(section).load(Ordering::Relaxed) != 0 {
                (section..granules.min(section + SECTION))
                    .filter_map(|granule| self.in_granule(granule))
                    .for_each(|(start, bytes)| tell(start, bytes));
            }
        }
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
