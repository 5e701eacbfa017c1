//! Translation tables as data: an identity map with 4 KiB granules and 39-bit addresses. When it is turned on, and what
//! the hardware must be told of a change, is in `mmu`.
//!
//! Blocks of 1 GiB and 2 MiB are used where a range allows, pages elsewhere. What is not mapped faults.
//!
//! The tables may be live while they are filled. So an entry that maps something is never given another size, another
//! address or another type of memory. That would need break-before-make: the entry is removed and every TLB drops it
//! first, and the code that does so may itself run in the mapping. An entry becomes valid, changes its permissions, or
//! becomes invalid; anything more is refused.

use core::sync::atomic::{AtomicU64, Ordering};

const ENTRIES: usize = 512;
pub(crate) const PAGE_BYTES: usize = 4096;
/// Bytes that one entry maps, by level: 1 GiB, 2 MiB, 4 KiB.
const ENTRY_BYTES: [usize; 3] = [1 << 30, 1 << 21, PAGE_BYTES];
/// Addresses from here on are not mapped: 39 bits.
const ADDRESS_LIMIT: usize = 1 << 39;

const VALID: u64 = 1;
const TABLE_OR_PAGE: u64 = 1 << 1;
const ATTRIBUTE_NORMAL: u64 = 0 << 2;
const ATTRIBUTE_DEVICE: u64 = 1 << 2;
const READ_ONLY: u64 = 1 << 7;
const INNER_SHAREABLE: u64 = 3 << 8;
const ACCESSED: u64 = 1 << 10;
const PRIVILEGED_EXECUTE_NEVER: u64 = 1 << 53;
const EXECUTE_NEVER: u64 = 1 << 54;
const ADDRESS_MASK: u64 = 0x0000_ffff_ffff_f000;
/// What may change in an entry while it is valid.
const PERMISSIONS: u64 = READ_ONLY | PRIVILEGED_EXECUTE_NEVER | EXECUTE_NEVER;

/// What a range of memory is for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Use {
    /// Code: read and execute.
    Text,
    /// Constants and input: read.
    ReadOnly,
    /// Data, heap, stacks: read and write.
    Data,
    /// Registers of devices: read and write, in order, one by one.
    Device,
    /// Nothing: every access faults.
    Guard,
}

impl Use {
    fn bits(self) -> u64 {
        let normal = VALID | ATTRIBUTE_NORMAL | INNER_SHAREABLE | ACCESSED | EXECUTE_NEVER;
        match self {
            Self::Text => normal | READ_ONLY,
            Self::ReadOnly => normal | READ_ONLY | PRIVILEGED_EXECUTE_NEVER,
            Self::Data => normal | PRIVILEGED_EXECUTE_NEVER,
            Self::Device => VALID | ATTRIBUTE_DEVICE | ACCESSED | EXECUTE_NEVER | PRIVILEGED_EXECUTE_NEVER,
            Self::Guard => 0,
        }
    }

    /// The entry that maps the page at `address` for this purpose.
    pub(crate) fn page(self, address: usize) -> u64 {
        self.entry(address, 2)
    }

    fn entry(self, address: usize, level: usize) -> u64 {
        match self.bits() {
            0 => 0,
            bits => address as u64 | bits | if level == 2 { TABLE_OR_PAGE } else { 0 },
        }
    }
}

/// Why a range was not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The pool of tables is used up.
    OutOfTables,
    /// The range is not made of whole pages, or lies beyond 39 bits.
    BadRange,
    /// Part of the range is mapped as another type of memory, or lies in a block that would have to be cut up.
    InUse,
}

/// One table of the pool. Its entries are read by the hardware at any time, hence atomic. Every access by code is
/// relaxed, because explicit barriers order it for the hardware, see `mmu`.
#[repr(C, align(4096))]
pub(crate) struct Table([AtomicU64; ENTRIES]);

impl Table {
    pub(crate) const fn empty() -> Self {
        Self([const { AtomicU64::new(0) }; ENTRIES])
    }
}

/// The tables while they are being filled. The first of the pool is the root.
pub struct Tables<'p> {
    pool: &'p [Table],
    used: usize,
}

impl<'p> Tables<'p> {
    /// The empty root. All tables of the pool are empty, and nobody else fills them.
    pub(crate) fn over(pool: &'p [Table]) -> Self {
        Self { pool, used: 1 }
    }

    /// Maps `start..end` onto itself. Where it overlaps what is mapped already, only the permissions may differ. The
    /// TLBs must be told before the mapping is relied on, and between unmapping something and mapping it anew.
    ///
    /// # Errors
    /// The range is not one of pages, has another purpose already, or needs more tables than there are. What comes before
    /// that is mapped.
    pub fn map(&mut self, start: usize, end: usize, purpose: Use) -> Result<(), MapError> {
        check(start, end)?;
        self.map_in(0, 0, start, end, purpose)
    }

    /// The same in pages only, so that each may get other permissions later.
    ///
    /// # Errors
    /// As for [`Self::map`].
    pub fn map_pages(&mut self, start: usize, end: usize, purpose: Use) -> Result<(), MapError> {
        check(start, end)?;
        (start..end).step_by(PAGE_BYTES).try_for_each(|page| self.map(page, page + PAGE_BYTES, purpose))
    }

    fn map_in(
        &mut self,
        table: usize,
        level: usize,
        mut at: usize,
        end: usize,
        purpose: Use,
    ) -> Result<(), MapError> {
        let bytes = ENTRY_BYTES[level];
        while at < end {
            let index = at / bytes % ENTRIES;
            let next = ((at / bytes + 1) * bytes).min(end);
            let entry = self.pool[table].0[index].load(Ordering::Relaxed);
            let whole = purpose.entry(at / bytes * bytes, level);
            if is_table(entry, level) {
                self.map_in(self.place_of(entry), level + 1, at, next, purpose)?;
            } else if entry == whole {
                // Mapped like that already, or not at all.
            } else if next - at == bytes {
                self.change(table, index, whole)?;
            } else if entry & VALID == 0 {
                let below = self.add_table(table, index)?;
                self.map_in(below, level + 1, at, next, purpose)?;
            } else {
                return Err(MapError::InUse);
            }
            at = next;
        }
        Ok(())
    }

    /// Sets an entry that is no table, if that may be done while it is in use.
    fn change(&self, table: usize, index: usize, to: u64) -> Result<(), MapError> {
        let entry = &self.pool[table].0[index];
        let from = entry.load(Ordering::Relaxed);
        if from & to & VALID != 0 && (from ^ to) & !PERMISSIONS != 0 {
            return Err(MapError::InUse);
        }
        entry.store(to, Ordering::Relaxed);
        Ok(())
    }

    /// Makes an entry that is invalid refer to a table of its own, which is empty.
    fn add_table(&mut self, table: usize, index: usize) -> Result<usize, MapError> {
        let below = self.used;
        let address = core::ptr::from_ref(self.pool.get(below).ok_or(MapError::OutOfTables)?) as u64;
        self.used += 1;
        self.pool[table].0[index].store(address | VALID | TABLE_OR_PAGE, Ordering::Relaxed);
        Ok(below)
    }

    fn place_of(&self, entry: u64) -> usize {
        place_of(self.pool, entry)
    }
}

/// The entry of a page that has one of its own.
pub(crate) fn page_entry(pool: &[Table], address: usize) -> Option<&AtomicU64> {
    let mut table = 0;
    for (level, bytes) in ENTRY_BYTES[..2].iter().enumerate() {
        let entry = pool[table].0[address / bytes % ENTRIES].load(Ordering::Relaxed);
        if !is_table(entry, level) {
            return None;
        }
        table = place_of(pool, entry);
    }
    Some(&pool[table].0[address / PAGE_BYTES % ENTRIES])
}

fn check(start: usize, end: usize) -> Result<(), MapError> {
    let is_whole = start.is_multiple_of(PAGE_BYTES) && end.is_multiple_of(PAGE_BYTES);
    if is_whole && start <= end && end <= ADDRESS_LIMIT { Ok(()) } else { Err(MapError::BadRange) }
}

fn is_table(entry: u64, level: usize) -> bool {
    level < 2 && entry & VALID != 0 && entry & TABLE_OR_PAGE != 0
}

fn place_of(pool: &[Table], entry: u64) -> usize {
    ((entry & ADDRESS_MASK) as usize - pool.as_ptr() as usize) / PAGE_BYTES
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::{
        ADDRESS_MASK, ENTRIES, ENTRY_BYTES, MapError, PAGE_BYTES, PERMISSIONS, Table, Tables, Use, VALID,
        is_table, page_entry, place_of,
    };
    use core::sync::atomic::Ordering;
    use std::boxed::Box;
    use std::collections::BTreeMap;
    use std::vec::Vec;

    const MIB: usize = 1 << 20;
    const GIB: usize = 1 << 30;

    fn pool(tables: usize) -> Box<[Table]> {
        (0..tables).map(|_| Table::empty()).collect()
    }

    /// What the hardware would find for an address: the bits of the last entry, without its address and kind.
    fn found(pool: &[Table], address: usize) -> u64 {
        let mut table = 0;
        for (level, bytes) in ENTRY_BYTES.iter().enumerate() {
            let entry = pool[table].0[address / bytes % ENTRIES].load(Ordering::Relaxed);
            if is_table(entry, level) {
                table = place_of(pool, entry);
                continue;
            }
            if entry & VALID == 0 {
                return 0;
            }
            assert_eq!((entry & ADDRESS_MASK) as usize, address / bytes * bytes, "mapped elsewhere");
            assert_eq!(entry & 2 != 0, level == 2, "a block where a page belongs, or the other way round");
            return entry & !ADDRESS_MASK & !2;
        }
        unreachable!("three levels")
    }

    #[test]
    fn maps_what_was_asked_for_and_no_more() {
        let pool = pool(8);
        let mut tables = Tables::over(&pool);
        tables.map(GIB + 3 * PAGE_BYTES, 3 * GIB + 2 * MIB + PAGE_BYTES, Use::Data).expect("fits");
        for (address, purpose) in [
            (0, Use::Guard),
            (GIB + 2 * PAGE_BYTES, Use::Guard),
            (GIB + 3 * PAGE_BYTES, Use::Data),
            (GIB + 2 * MIB, Use::Data),
            (2 * GIB, Use::Data),
            (3 * GIB - PAGE_BYTES, Use::Data),
            (3 * GIB + 2 * MIB, Use::Data),
            (3 * GIB + 2 * MIB + PAGE_BYTES, Use::Guard),
        ] {
            assert_eq!(found(&pool, address), purpose.bits(), "{address:#x}");
        }
        assert!(page_entry(&pool, GIB).is_some(), "a page of its own beside pages that are mapped");
        assert!(page_entry(&pool, GIB + 2 * MIB).is_none() && page_entry(&pool, 2 * GIB).is_none());
    }

    #[test]
    fn a_block_in_use_is_not_cut_up_and_keeps_its_type() {
        let pool = pool(8);
        let mut tables = Tables::over(&pool);
        tables.map(2 * MIB, 4 * MIB, Use::Data).expect("fits");
        assert_eq!(tables.map(2 * MIB, 2 * MIB + PAGE_BYTES, Use::Guard), Err(MapError::InUse));
        assert_eq!(tables.map(2 * MIB, 2 * MIB + PAGE_BYTES, Use::ReadOnly), Err(MapError::InUse));
        assert_eq!(tables.map(2 * MIB, 4 * MIB, Use::Device), Err(MapError::InUse));
        assert_eq!(found(&pool, 2 * MIB), Use::Data.bits());
        // An entry that stays the same breaks no rule, and permissions may change.
        assert_eq!(tables.map(2 * MIB, 2 * MIB + PAGE_BYTES, Use::Data), Ok(()));
        assert_eq!(tables.map(2 * MIB, 4 * MIB, Use::ReadOnly), Ok(()));
        assert_eq!(found(&pool, 2 * MIB), Use::ReadOnly.bits());
    }

    #[test]
    fn pages_can_be_taken_out_and_put_back() {
        let pool = pool(4);
        let mut tables = Tables::over(&pool);
        tables.map_pages(2 * MIB, 6 * MIB, Use::ReadOnly).expect("fits");
        tables.map(2 * MIB, 6 * MIB, Use::Data).expect("other permissions");
        tables.map(4 * MIB, 4 * MIB + PAGE_BYTES, Use::Guard).expect("a page of its own");
        let neighbour = found(&pool, 4 * MIB + PAGE_BYTES);
        assert_eq!((found(&pool, 4 * MIB), neighbour), (Use::Guard.bits(), Use::Data.bits()));
        let entry = page_entry(&pool, 4 * MIB).expect("a page of its own");
        entry.store(Use::Data.page(4 * MIB), Ordering::Relaxed);
        assert_eq!(found(&pool, 4 * MIB), Use::Data.bits());
    }

    #[test]
    fn bad_ranges_and_an_empty_pool_are_refused() {
        let pool = pool(2);
        let mut tables = Tables::over(&pool);
        for (start, end) in [(1, PAGE_BYTES), (0, 1), (PAGE_BYTES, 0), (0, (1 << 39) + PAGE_BYTES)] {
            assert_eq!(tables.map(start, end, Use::Data), Err(MapError::BadRange), "{start:#x}..{end:#x}");
        }
        assert_eq!(tables.map(0, PAGE_BYTES, Use::Data), Err(MapError::OutOfTables));
        assert_eq!(tables.map(0, PAGE_BYTES, Use::Guard), Ok(()), "what is not mapped needs no table");
    }

    /// Random ranges against a map of pages; and no entry in use ever changes in a way that is not allowed.
    #[test]
    fn like_a_list_of_pages_and_never_breaking_what_is_in_use() {
        const PAGES: usize = 3 * 512;
        let mut state = 1_u64;
        let mut below = move |end: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % end
        };
        let (mut done, mut refused) = (0, 0);
        for _ in 0..200 {
            let pool = pool(6);
            let mut tables = Tables::over(&pool);
            let mut model = BTreeMap::new();
            for _ in 0..8 {
                let (a, b) = (below(PAGES / 64 + 1) * 64, below(PAGES / 64 + 1) * 64);
                let (start, end) = (a.min(b), a.max(b));
                let purpose =
                    [Use::Text, Use::ReadOnly, Use::Data, Use::Data, Use::Device, Use::Guard][below(6)];
                let before = snapshot(&pool);
                let result = tables.map(start * PAGE_BYTES, end * PAGE_BYTES, purpose);
                for (old, new) in before.iter().zip(snapshot(&pool)) {
                    let is_sound = old & new & VALID == 0 || (old ^ new) & !PERMISSIONS == 0;
                    assert!(is_sound, "{old:#x} became {new:#x} in use");
                }
                match result {
                    Ok(()) => {
                        model.extend((start..end).map(|page| (page, purpose)));
                        done += 1;
                    }
                    // Part of the range may have been mapped.
                    Err(_) => {
                        refused += 1;
                        break;
                    }
                }
                for page in 0..PAGES {
                    let expected = model.get(&page).copied().unwrap_or(Use::Guard);
                    assert_eq!(found(&pool, page * PAGE_BYTES), expected.bits(), "page {page}");
                }
            }
        }
        assert!(done > 100 && refused > 50, "{done} done, {refused} refused");
    }

    fn snapshot(pool: &[Table]) -> Vec<u64> {
        pool.iter().flat_map(|table| table.0.iter().map(|entry| entry.load(Ordering::Relaxed))).collect()
    }
}
