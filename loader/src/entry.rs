//! The first instructions: the loader moves out of the kernel's way; and the last: it jumps there.

use core::arch::{asm, global_asm};

use crate::board::{self, KERNEL};

global_asm!(
    r#"
    .section .text.boot, "ax"
    .global _start
_start:
    b       1f
    .long   0
    .quad   0x200000                // where it is to be put, from the start of memory
    .quad   0x4000000               // what it claims: 64 MiB, with the kernel's place and its own
    .quad   0x2                     // 4 KiB pages, little-endian
    .quad   0, 0, 0
    .ascii  "ARM\x64"
    .long   0
1:  msr     daifset, #0xf
    mov     x20, x0                 // the device tree, for the kernel
    // Lines that earlier code has left in a cache could be written back over what is written here without caches.
    ldr     x0, =__loader_start
    ldr     x1, =__stack_top
    bl      magpie_loader_clean
    // Copies itself from where it is to where it was linked.
    adr     x1, _start
    ldr     x2, =__loader_start
    ldr     x3, =__loader_end
2:  ldp     x4, x5, [x1], #16
    stp     x4, x5, [x2], #16
    cmp     x2, x3
    b.lo    2b
    ldr     x2, =__bss_start
    ldr     x3, =__bss_end
3:  cmp     x2, x3
    b.hs    4f
    stp     xzr, xzr, [x2], #16
    b       3b
    // And instructions may be fetched through a cache, from lines that are older than what was written.
4:  ldr     x0, =__loader_start
    ldr     x1, =__stack_top
    bl      magpie_loader_clean
    ic      iallu
    dsb     sy
    isb
    // The compiler uses floating-point registers to move bytes.
    mrs     x4, CurrentEL
    cmp     x4, #8
    b.ne    5f
    mov     x4, #0x33ff
    msr     cptr_el2, x4
    b       6f
5:  mov     x4, #(3 << 20)
    msr     cpacr_el1, x4
6:  isb
    ldr     x4, =__stack_top
    mov     sp, x4
    mov     x0, x20
    ldr     x4, =magpie_loader_main
    br      x4

    // Writes the cache lines of x0..x1 back to memory and drops them. Changes x0, x2 and x3.
    .global magpie_loader_clean
magpie_loader_clean:
    mrs     x2, ctr_el0
    ubfx    x2, x2, #16, #4         // the shortest line of any data cache, as a power of two words
    mov     x3, #4
    lsl     x2, x3, x2
    sub     x3, x2, #1
    bic     x0, x0, x3
    dsb     sy
7:  dc      civac, x0
    add     x0, x0, x2
    cmp     x0, x1
    b.lo    7b
    dsb     sy
    ret
    .ltorg
    "#
);

unsafe extern "C" {
    fn magpie_loader_clean(start: usize, end: usize);
}

/// Writes the caches' lines of a range back to memory and drops them.
///
/// The loader writes to memory itself, past the caches. Before it does, an older line may still be written back over
/// it; afterwards the kernel's instructions may be fetched from such a line. So it is called before and after, and no
/// line can be both older than memory and written back.
pub fn clean(start: usize, bytes: usize) {
    // SAFETY: changes memory only where a cache holds what is newer.
    unsafe { magpie_loader_clean(start, start + bytes) };
}

/// Called by the first instructions, at the place where it was linked.
#[unsafe(no_mangle)]
extern "C" fn magpie_loader_main(tree: usize) -> ! {
    let bytes = board::kernel();
    clean(KERNEL, bytes);
    // SAFETY: a kernel lies there, whole by its checksum; what was written is made visible to the fetching of
    // instructions first. It is entered as the firmware would: same level, MMU off, device tree in x0.
    unsafe {
        asm!(
            "dsb sy",
            "ic iallu",
            "dsb sy",
            "isb",
            "br {kernel}",
            kernel = in(reg) KERNEL,
            in("x0") tree,
            in("x1") 0,
            in("x2") 0,
            in("x3") 0,
            options(noreturn)
        )
    }
}
