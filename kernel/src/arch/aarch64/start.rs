//! The first instructions: image header, exception level, early stack; and how other cores come in.
//!
//! Entered at EL2 or EL1 with the MMU off, x0 = device tree. Ends in `magpie_boot_primary`, on the boot
//! core's stack, still with the MMU off: boot maps the image and turns it on. Other cores enter at
//! `magpie_secondary` with x0 = their [`SecondaryStart`] and end in `magpie_boot_secondary`, with the MMU on. What each
//! instruction touches before that, and why that is sound: `docs/boot.md`.

use core::arch::global_asm;
use core::mem::offset_of;

use crate::arch::atomic::{AtomicUsize, Ordering};
use crate::arch::stack_layout::{BLOCK_BYTES, BOOT_SLOT_BYTES};
use crate::arch::{cpu, mmu};

/// What a core needs before it can run Rust; written by the boot core and cleaned to memory.
#[repr(C, align(64))]
pub struct SecondaryStart {
    /// Top of its stack.
    pub stack_top: usize,
    /// Its stack's block.
    pub stack_block: usize,
    /// Its number.
    pub core: usize,
}

/// Tells the linker script where memory begins: once, in the board's part of boot. Without it, memory begins where
/// QEMU's `virt` has it.
#[doc(hidden)]
#[macro_export]
macro_rules! memory_begins_at {
    ($address:literal) => {
        ::core::arch::global_asm!(".globl MAGPIE_RAM", concat!(".set MAGPIE_RAM, ", $address));
    };
}

/// Distance of the image from the start of memory, the same on every board.
const TEXT_OFFSET: u64 = 0x20_0000;
/// Cores that can be told apart by the lowest affinity field, a power of two.
const SPIN_RECORDS: usize = 64;

/// The start records of cores that wait on a spin table, by affinity value.
#[unsafe(no_mangle)]
static MAGPIE_SPIN_RECORDS: [AtomicUsize; SPIN_RECORDS] = [const { AtomicUsize::new(0) }; SPIN_RECORDS];

global_asm!(
    r#"
    .section .text.boot, "ax"
    .global _start
_start:
    // The header of a Linux arm64 image: QEMU and the Pi's firmware load by it.
    b       magpie_primary
    .long   0
    .quad   {text_offset}
    .quad   __image_bytes
    .quad   0x2                     // 4 KiB pages, little-endian
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .long   0

magpie_primary:
    msr     daifset, #0xf
    mov     x20, x0
    bl      magpie_to_el1
    // An image for another board lies at another address than it was linked for.
    adr     x0, _start
    ldr     x1, =_start
    cmp     x0, x1
    b.eq    6f
    adrp    x1, __boot_stack_block
    mov     sp, x1
    b       magpie_boot_misplaced
6:  // From here until the caches are on, only what lies between these two is written. A line that whoever ran before
    // has left in a cache could be written back over it.
    adrp    x0, __bss_start
    add     x0, x0, :lo12:__bss_start
    adrp    x1, __image_end
    add     x1, x1, :lo12:__image_end
    bl      magpie_drop_lines
    adrp    x0, __bss_start
    add     x0, x0, :lo12:__bss_start
    adrp    x1, __bss_end
    add     x1, x1, :lo12:__bss_end
1:  cmp     x0, x1
    b.hs    2f
    stp     xzr, xzr, [x0], #16
    b       1b
2:  adrp    x0, __boot_stack_block
    add     x0, x0, :lo12:__boot_stack_block
    add     x1, x0, #{block_bytes}
3:  sub     x1, x1, #16
    stp     xzr, xzr, [x1]
    cmp     x1, x0
    b.hi    3b
    mov     x1, #1                  // preemption is disabled once
    str     w1, [x0]
    msr     tpidr_el0, x0
    mov     sp, x0
    msr     tpidr_el1, xzr
    mov     x29, xzr
    mov     x30, xzr
    mov     x0, x20
    b       magpie_boot_primary

    .global magpie_secondary
magpie_secondary:
    msr     daifset, #0xf
    mov     x20, x0
    bl      magpie_to_el1
    // Nothing is written before the caches are on: other cores, whose caches are, may hold lines of this core's stack.
    // What is read was cleaned to memory.
    ldr     x21, [x20, #{stack_top}]
    ldr     x22, [x20, #{stack_block}]
    ldr     x23, [x20, #{core}]
    mov     x0, xzr
    mov     x1, xzr
    bl      magpie_mmu_on
    mov     x0, x23
    mov     sp, x21
    msr     tpidr_el0, x22
    msr     tpidr_el1, xzr
    mov     x29, xzr
    mov     x30, xzr
    b       magpie_boot_secondary

    // As magpie_secondary, for cores that wait on a spin table: they come with x0 = 0, so each finds its
    // record by its number.
magpie_spin_secondary:
    mrs     x1, mpidr_el1
    and     x1, x1, #{spin_records} - 1
    adrp    x0, MAGPIE_SPIN_RECORDS
    add     x0, x0, :lo12:MAGPIE_SPIN_RECORDS
    ldr     x0, [x0, x1, lsl #3]
    b       magpie_secondary

    // Returns at EL1 with SP_EL1, whatever the level was before. Changes x0, x1 and x30 only.
magpie_to_el1:
    mrs     x0, CurrentEL
    lsr     x0, x0, #2
    cmp     x0, #2
    b.eq    2f
    b.hi    3f
    b       4f
2:  // EL2: let EL1 use the timers, the counter offset zero, the interrupt controller's registers.
    mov     x0, #(1 << 31)          // HCR_EL2.RW: EL1 is AArch64
    msr     hcr_el2, x0
    isb                             // the registers below are as they are without E2H
    msr     vttbr_el2, xzr          // one VMID on all cores: it is part of what a broadcast TLBI names
    mov     x0, #3
    msr     cnthctl_el2, x0
    msr     cntvoff_el2, xzr
    mov     x0, #0x33ff             // CPTR_EL2: no traps
    msr     cptr_el2, x0
    msr     hstr_el2, xzr
    mrs     x0, midr_el1
    msr     vpidr_el2, x0
    mrs     x0, mpidr_el1
    msr     vmpidr_el2, x0
    mrs     x0, id_aa64pfr0_el1
    ubfx    x0, x0, #24, #4
    cbz     x0, 5f                  // no GICv3 system registers
    mrs     x0, S3_4_C12_C9_5       // ICC_SRE_EL2
    mov     x1, #9                  // use them, and let EL1 use them
    orr     x0, x0, x1
    msr     S3_4_C12_C9_5, x0
    isb
5:  mov     x0, #(3 << 20)          // CPACR_EL1.FPEN: floating point for EL1
    msr     cpacr_el1, x0
    mov     x0, #0x0800             // SCTLR_EL1: reserved-one bits, everything off
    movk    x0, #0x30d0, lsl #16
    msr     sctlr_el1, x0
    mov     x0, #0x3c5              // EL1h, everything masked
    msr     spsr_el2, x0
    msr     elr_el2, x30
    eret
3:  // EL3: no firmware is there to start other cores or to switch off. Not supported: wait for ever.
    wfe
    b       3b
4:  msr     spsel, #1
    mov     x0, #(3 << 20)          // CPACR_EL1.FPEN: floating point for EL1
    msr     cpacr_el1, x0
    isb
    ret

    // For the linker script.
    .global __boot_slot_bytes
    .set    __boot_slot_bytes, {slot_bytes}
    .global __boot_block_bytes
    .set    __boot_block_bytes, {block_bytes}
    "#,
    text_offset = const TEXT_OFFSET,
    slot_bytes = const BOOT_SLOT_BYTES,
    block_bytes = const BLOCK_BYTES,
    stack_top = const offset_of!(SecondaryStart, stack_top),
    stack_block = const offset_of!(SecondaryStart, stack_block),
    core = const offset_of!(SecondaryStart, core),
    spin_records = const SPIN_RECORDS,
);

unsafe extern "C" {
    /// Where other cores enter; only its address is used.
    fn magpie_secondary();
    /// Where other cores enter that wait on a spin table.
    fn magpie_spin_secondary();
}

/// Where other cores enter.
pub fn secondary_entry() -> usize {
    magpie_secondary as *const () as usize
}

/// Releases a core that waits on a spin table: writes the entry address to its slot, and wakes it. Returns whether it
/// could: the core's affinity value must be small, because the core finds its record by it.
///
/// # Safety
/// `slot` is the core's slot of the table, mapped as memory. `record` is the address of its [`SecondaryStart`],
/// which stays, and is cleaned to memory.
pub unsafe fn release_from_spin_table(slot: usize, affinity: u64, record: usize) -> bool {
    let Some(place) = usize::try_from(affinity).ok().and_then(|index| MAGPIE_SPIN_RECORDS.get(index)) else {
        return false;
    };
    // Relaxed: the core reads it with its caches off; what orders it is the cleaning to memory.
    place.store(record, Ordering::Relaxed);
    mmu::clean(core::ptr::from_ref(place) as usize, size_of::<usize>());
    let entry = magpie_spin_secondary as *const () as u64;
    // SAFETY: the caller promised that the slot is mapped as memory.
    unsafe { core::ptr::with_exposed_provenance_mut::<u64>(slot).write_volatile(entry) };
    mmu::clean(slot, size_of::<u64>());
    cpu::send_event();
    true
}
