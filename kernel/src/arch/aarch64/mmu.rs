//! The MMU and the caches: turning them on, what the hardware must be told of a change of the tables, and which lines
//! must be dropped or written back where a core runs without them. The tables themselves: `page_tables`.
//!
//! The tables come from a fixed pool, filled by boot before any other core runs. Afterwards only the pages of
//! stacks' reserves change, see [`map_page`]. Why each step is as it is: `docs/boot.md`.

use core::arch::{asm, global_asm};
use core::sync::atomic::Ordering;

use aarch64_cpu::asm::barrier;

pub use crate::arch::page_tables::{MapError, Tables, Use};
use crate::arch::page_tables::{PAGE_BYTES, Table, page_entry};

/// Tables in the pool: the root, and enough to cut up the image, the stacks and a few devices.
const TABLES: usize = 64;

#[unsafe(link_section = ".bss.no_pointers")]
static POOL: [Table; TABLES] = [const { Table::empty() }; TABLES];

/// Attribute 0: normal memory, write-back, allocated on reads and writes. Attribute 1: device registers, nGnRE.
const MAIR: u64 = 0x04ff;

/// 39-bit addresses from 4 KiB granules below TTBR0 alone, 40-bit physical; the walks read as the cores do: inner shareable,
/// write-back.
const TCR: u64 = {
    const ADDRESS_BITS: u64 = 39;
    const WALKS_WRITE_BACK: u64 = 1 << 8 | 1 << 10;
    const WALKS_INNER_SHAREABLE: u64 = 3 << 12;
    const NO_TTBR1: u64 = 1 << 23;
    const PHYSICAL_40_BITS: u64 = 2 << 32;
    (64 - ADDRESS_BITS) | WALKS_WRITE_BACK | WALKS_INNER_SHAREABLE | NO_TTBR1 | PHYSICAL_40_BITS
};

/// The reserved-one bits, and: translation, data caches, the check of SP's alignment, instruction caches, nothing
/// writable is executable. Written as a whole, so that nothing depends on what was there.
const SCTLR: u64 = 0x30d0_0800 | 1 | 1 << 2 | 1 << 3 | 1 << 12 | 1 << 19;

global_asm!(
    r#"
    .section .text.mmu, "ax"

    // Drops the cache lines of x0..x1 without writing them back. x0 is where a line begins, and x1 where one ends,
    // whatever the length of lines. Changes x0, x2 and x3.
    .global magpie_drop_lines
magpie_drop_lines:
    mrs     x2, ctr_el0
    ubfx    x2, x2, #16, #4         // DminLine: the shortest line of any data cache, as a power of two words
    mov     x3, #4
    lsl     x2, x3, x2
    dsb     sy                      // what was written without caches is in memory
1:  cmp     x0, x1
    b.hs    2f
    dc      ivac, x0
    add     x0, x0, x2
    b       1b
2:  dsb     sy
    ret

    // Turns on the map and the caches on this core, having dropped the lines of x0..x1 as above: what was written with
    // caches off, up to now. Touches no memory between that and its end. Changes x0 to x4.
    .global magpie_mmu_on
magpie_mmu_on:
    mov     x4, x30
    bl      magpie_drop_lines
    mov     x30, x4
    mov     x0, #{mair}
    msr     mair_el1, x0
    mov     x0, #{tcr_low}
    movk    x0, #{tcr_middle}, lsl #16
    movk    x0, #{tcr_high}, lsl #32
    msr     tcr_el1, x0
    adrp    x0, {pool}
    msr     ttbr0_el1, x0           // ASID 0
    isb                             // no walk with the registers of before, once it is on
    tlbi    vmalle1                 // what a TLB holds from before, or from reset
    ic      iallu                   // and an instruction cache
    dsb     nsh
    isb
    mov     x0, #{sctlr_low}
    movk    x0, #{sctlr_high}, lsl #16
    msr     sctlr_el1, x0           // translation and caches at once: no walk without caches
    isb                             // what follows is fetched, and accesses memory, with them
    ret
    "#,
    mair = const MAIR,
    tcr_low = const TCR & 0xffff,
    tcr_middle = const TCR >> 16 & 0xffff,
    tcr_high = const TCR >> 32 & 0xffff,
    sctlr_low = const SCTLR & 0xffff,
    sctlr_high = const SCTLR >> 16 & 0xffff,
    pool = sym POOL,
);

const _: () =
    assert!(MAIR <= 0xffff && TCR < 1 << 48 && SCTLR < 1 << 32, "as the instructions above load them");

/// The empty tables.
///
/// # Safety
/// Called once, on the core that boots, before any other core runs.
pub unsafe fn tables() -> Tables<'static> {
    Tables::over(&POOL)
}

/// Turns on the map and the caches on the core that boots. `start..end` is what it has written until now: whole pages,
/// this stack among them, the caches' lines of which are dropped.
///
/// # Safety
/// The tables map everything that runs and is used from here on, onto itself. Nobody has written to `start..end` through
/// a cache since its lines were dropped before the first write.
pub unsafe fn enable(start: usize, end: usize) {
    // SAFETY: by contract. It changes the named registers, and memory only where the caches disagreed with it.
    unsafe {
        asm!(
            "bl magpie_mmu_on",
            inout("x0") start => _,
            in("x1") end,
            out("x2") _,
            out("x3") _,
            out("x4") _,
            out("x30") _,
            options(nostack)
        );
    }
}

/// Maps a page as data, or unmaps it, on every core.
///
/// # Safety
/// Boot has left this page unmapped, among pages that are mapped. Nobody else changes it at the same time, and nobody uses
/// it where it is unmapped.
///
/// # Panics
/// If it is no page that boot has mapped alone.
pub unsafe fn map_page(address: usize, is_mapped: bool) {
    let purpose = if is_mapped { Use::Data } else { Use::Guard };
    let Some(entry) = page_entry(&POOL, address) else { panic!("page {address:#x} has no entry of its own") };
    // Relaxed: what orders it for the walkers of the tables are the barriers below.
    entry.store(purpose.page(address), Ordering::Relaxed);
    let page = (address / PAGE_BYTES) as u64;
    // What was not mapped is in no core's TLB; dropping it all the same keeps this code short.
    // SAFETY: drops cached translations; the tables themselves say what is mapped.
    unsafe {
        asm!(
            "dsb ishst",
            "tlbi vaae1is, {}",
            "dsb ish",
            "isb",
            in(reg) page,
            options(nostack, preserves_flags)
        );
    }
}

/// Makes changes of the map take effect on every core.
pub fn flush() {
    // SAFETY: drops cached translations; the tables themselves say what is mapped.
    unsafe { asm!("dsb ishst", "tlbi vmalle1is", "dsb ish", "isb", options(nostack, preserves_flags)) };
}

/// Writes a range back to memory and drops it from the caches, so that a core with its caches off, or the firmware,
/// sees what was written here, and what they write is seen here. Ordered after every earlier access and before every
/// later one.
pub fn clean(start: usize, bytes: usize) {
    let shape: usize;
    // SAFETY: reads a register.
    unsafe { asm!("mrs {}, ctr_el0", out(reg) shape, options(pure, nomem, nostack, preserves_flags)) };
    // DminLine, as above.
    let line_bytes = 4 << (shape >> 16 & 0xf);
    // The arrival of an answer was read from a device before this. That is no access to the range, so it needs a
    // barrier.
    barrier::dsb(barrier::SY);
    let mut at = start & !(line_bytes - 1);
    while at < start + bytes {
        // SAFETY: writes a cache line back; changes no data.
        unsafe { asm!("dc civac, {}", in(reg) at, options(nostack, preserves_flags)) };
        at += line_bytes;
    }
    barrier::dsb(barrier::SY);
}
