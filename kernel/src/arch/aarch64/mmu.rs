//! Page tables: an identity map with 4 KiB granules and 39-bit addresses.
//!
//! The tables come from a fixed pool, filled by boot before any other core runs and not changed
//! afterwards. Blocks of 1 GiB and 2 MiB are used where a range allows, pages elsewhere. What is not
//! mapped faults: page 0, and the guard pages of the stacks.

use core::cell::UnsafeCell;

use aarch64_cpu::asm::barrier;
use aarch64_cpu::registers::{MAIR_EL1, ReadWriteable, SCTLR_EL1, TCR_EL1, TTBR0_EL1, Writeable};

const ENTRIES: usize = 512;
const PAGE_BYTES: usize = 4096;
/// Bytes that one entry maps, by level: 1 GiB, 2 MiB, 4 KiB.
const ENTRY_BYTES: [usize; 3] = [1 << 30, 1 << 21, PAGE_BYTES];
/// Addresses from here on are not mapped: 39 bits.
const ADDRESS_LIMIT: usize = 1 << 39;
/// Tables in the pool: the root, and enough to cut up the image, the stacks and a few devices.
const TABLES: usize = 64;

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
}

/// Why a range was not mapped.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum MapError {
    /// The pool of tables is used up.
    OutOfTables,
    /// The range is not made of whole pages, or lies beyond 39 bits.
    BadRange,
}

#[repr(C, align(4096))]
struct Table([u64; ENTRIES]);

struct Pool(UnsafeCell<[Table; TABLES]>);

// SAFETY: written by the boot core alone, before the others run (the contract of `Tables::new`).
unsafe impl Sync for Pool {}

static POOL: Pool = Pool(UnsafeCell::new([const { Table([0; ENTRIES]) }; TABLES]));

/// The tables while they are being filled.
pub struct Tables {
    used: usize,
}

impl Tables {
    /// The empty root.
    ///
    /// # Safety
    /// Called once, on the core that boots, before any other core runs.
    pub unsafe fn new() -> Self {
        Self { used: 1 }
    }

    /// Maps `start..end` onto itself; a later call overrides an earlier one where they overlap.
    pub fn map(&mut self, start: usize, end: usize, purpose: Use) -> Result<(), MapError> {
        if !start.is_multiple_of(PAGE_BYTES)
            || !end.is_multiple_of(PAGE_BYTES)
            || end > ADDRESS_LIMIT
            || start > end
        {
            return Err(MapError::BadRange);
        }
        self.map_in(0, 0, start, end, purpose.bits())
    }

    fn map_in(
        &mut self,
        table: usize,
        level: usize,
        mut at: usize,
        end: usize,
        bits: u64,
    ) -> Result<(), MapError> {
        let bytes = ENTRY_BYTES[level];
        while at < end {
            let index = at / bytes % ENTRIES;
            let next = ((at / bytes + 1) * bytes).min(end);
            if next - at == bytes {
                let kind = if level == 2 { TABLE_OR_PAGE } else { 0 };
                let entry = if bits == 0 { 0 } else { at as u64 | bits | kind };
                self.set(table, index, entry);
            } else {
                let below = self.table_below(table, level, index)?;
                self.map_in(below, level + 1, at, next, bits)?;
            }
            at = next;
        }
        Ok(())
    }

    /// The table that an entry refers to, made from the block it maps now if it is none yet.
    fn table_below(&mut self, table: usize, level: usize, index: usize) -> Result<usize, MapError> {
        let entry = self.get(table, index);
        if entry & VALID != 0 && entry & TABLE_OR_PAGE != 0 {
            return Ok(((entry & ADDRESS_MASK) as usize - base()) / PAGE_BYTES);
        }
        if self.used == TABLES {
            return Err(MapError::OutOfTables);
        }
        let below = self.used;
        self.used += 1;
        if entry & VALID != 0 {
            let kind = if level == 1 { TABLE_OR_PAGE } else { 0 };
            for i in 0..ENTRIES {
                self.set(below, i, (entry + (i * ENTRY_BYTES[level + 1]) as u64) | kind);
            }
        }
        self.set(table, index, (base() + below * PAGE_BYTES) as u64 | VALID | TABLE_OR_PAGE);
        Ok(below)
    }

    fn get(&self, table: usize, index: usize) -> u64 {
        // SAFETY: `self` is the only user of the pool (see `new`), and the indices are in bounds.
        unsafe { (*POOL.0.get())[table].0[index] }
    }

    fn set(&mut self, table: usize, index: usize, entry: u64) {
        // SAFETY: as in `get`.
        unsafe { (*POOL.0.get())[table].0[index] = entry }
    }
}

fn base() -> usize {
    POOL.0.get() as usize
}

/// Turns on the map and the caches on this core.
///
/// # Safety
/// The tables map everything that runs and is used from here on, onto itself.
pub unsafe fn enable() {
    MAIR_EL1.write(
        MAIR_EL1::Attr0_Normal_Outer::WriteBack_NonTransient_ReadWriteAlloc
            + MAIR_EL1::Attr0_Normal_Inner::WriteBack_NonTransient_ReadWriteAlloc
            + MAIR_EL1::Attr1_Device::nonGathering_nonReordering_EarlyWriteAck,
    );
    TCR_EL1.write(
        TCR_EL1::T0SZ.val(25)
            + TCR_EL1::TG0::KiB_4
            + TCR_EL1::SH0::Inner
            + TCR_EL1::ORGN0::WriteBack_ReadAlloc_WriteAlloc_Cacheable
            + TCR_EL1::IRGN0::WriteBack_ReadAlloc_WriteAlloc_Cacheable
            + TCR_EL1::EPD1::DisableTTBR1Walks
            + TCR_EL1::IPS::Bits_40,
    );
    TTBR0_EL1.set_baddr(base() as u64);
    // SAFETY: drops what the caches of translations and instructions may hold from before.
    unsafe {
        core::arch::asm!(
            "dsb ish",
            "tlbi vmalle1",
            "ic iallu",
            "dsb ish",
            "isb",
            options(nostack, preserves_flags)
        );
    }
    SCTLR_EL1.modify(
        SCTLR_EL1::M::Enable + SCTLR_EL1::C::Cacheable + SCTLR_EL1::I::Cacheable + SCTLR_EL1::WXN::Enable,
    );
    barrier::isb(barrier::SY);
}

/// Makes changes of the map take effect on every core.
pub fn flush() {
    // SAFETY: drops cached translations; the tables themselves say what is mapped.
    unsafe {
        core::arch::asm!("dsb ishst", "tlbi vmalle1is", "dsb ish", "isb", options(nostack, preserves_flags))
    };
}

/// Writes a range back to memory, so that a core with its caches off, or the firmware, sees it.
pub fn clean(start: usize, bytes: usize) {
    const LINE_BYTES: usize = 64;
    let mut at = start & !(LINE_BYTES - 1);
    while at < start + bytes {
        // SAFETY: writes a cache line back; changes no data.
        unsafe { core::arch::asm!("dc civac, {}", in(reg) at, options(nostack, preserves_flags)) };
        at += LINE_BYTES;
    }
    barrier::dsb(barrier::SY);
}
