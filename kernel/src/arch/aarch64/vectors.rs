//! The exception vectors: save everything on the interrupted stack, call Rust, restore everything.
//!
//! A stack that has no room left cannot be written to. Every stack occupies a slot of 64 KiB whose lowest
//! 4 KiB are its guard page, so bits 12 to 15 of the new stack pointer are zero exactly when it has run
//! into the guard. Then the frame goes to the core's emergency stack instead.

use core::arch::global_asm;

use super::frame::{ELR, FPCR, Q, SIZE, SP};

global_asm!(
    r#"
    // Makes room for a frame and saves x0 and x1; afterwards x1 says whether the stack had overflowed.
    .macro ENTER handler
        msr     tpidrro_el0, x0
        sub     x0, sp, #{size}
        tst     x0, #0xf000
        b.eq    1f
        mov     sp, x0
        mrs     x0, tpidrro_el0
        stp     x0, x1, [sp]
        add     x0, sp, #{size}
        str     x0, [sp, #{sp}]
        mov     x1, #0
        b       \handler
    1:  // Out of stack.
        mrs     x0, tpidr_el0
        sub     x0, x0, #{size}
        str     x1, [x0, #8]
        mov     x1, sp
        str     x1, [x0, #{sp}]
        mov     sp, x0
        mrs     x1, tpidrro_el0
        str     x1, [sp]
        mov     x1, #1
        b       \handler
    .endm

    // Saves the rest; x0 and x1 are saved already, x1 is kept.
    .macro SAVE
        stp     x2, x3, [sp, #16]
        stp     x4, x5, [sp, #32]
        stp     x6, x7, [sp, #48]
        stp     x8, x9, [sp, #64]
        stp     x10, x11, [sp, #80]
        stp     x12, x13, [sp, #96]
        stp     x14, x15, [sp, #112]
        stp     x16, x17, [sp, #128]
        stp     x18, x19, [sp, #144]
        stp     x20, x21, [sp, #160]
        stp     x22, x23, [sp, #176]
        stp     x24, x25, [sp, #192]
        stp     x26, x27, [sp, #208]
        stp     x28, x29, [sp, #224]
        str     x30, [sp, #240]
        mrs     x2, elr_el1
        mrs     x3, spsr_el1
        stp     x2, x3, [sp, #{elr}]
        mrs     x2, fpcr
        mrs     x3, fpsr
        stp     x2, x3, [sp, #{fpcr}]
        add     x2, sp, #{q}
        stp     q0, q1, [x2]
        stp     q2, q3, [x2, #32]
        stp     q4, q5, [x2, #64]
        stp     q6, q7, [x2, #96]
        stp     q8, q9, [x2, #128]
        stp     q10, q11, [x2, #160]
        stp     q12, q13, [x2, #192]
        stp     q14, q15, [x2, #224]
        stp     q16, q17, [x2, #256]
        stp     q18, q19, [x2, #288]
        stp     q20, q21, [x2, #320]
        stp     q22, q23, [x2, #352]
        stp     q24, q25, [x2, #384]
        stp     q26, q27, [x2, #416]
        stp     q28, q29, [x2, #448]
        stp     q30, q31, [x2, #480]
    .endm

    .section .text.vectors, "ax"
    .balign 0x800
    .global magpie_vectors
magpie_vectors:
    // From the current EL on SP_EL0: never used.
    .balign 0x80
    ENTER magpie_unexpected
    .balign 0x80
    ENTER magpie_unexpected
    .balign 0x80
    ENTER magpie_unexpected
    .balign 0x80
    ENTER magpie_unexpected
    // From the current EL on SP_EL1: the kernel.
    .balign 0x80
    ENTER magpie_synchronous_entry
    .balign 0x80
    ENTER magpie_interrupt_entry
    .balign 0x80
    ENTER magpie_unexpected
    .balign 0x80
    ENTER magpie_unexpected
    // From a lower EL: never used.
    .rept 8
    .balign 0x80
    ENTER magpie_unexpected
    .endr
    .balign 0x80

magpie_synchronous_entry:
    SAVE
    mov     x0, sp
    bl      magpie_synchronous
    b       magpie_restore

magpie_unexpected:
    SAVE
    mov     x0, sp
    bl      magpie_unexpected_exception
    b       magpie_restore

magpie_interrupt_entry:
    SAVE
    mov     x0, sp
    bl      magpie_interrupt
    // Falls through.

    // Continues the code whose frame the stack pointer points to.
    .global magpie_restore
magpie_restore:
    ldp     x2, x3, [sp, #{elr}]
    msr     elr_el1, x2
    msr     spsr_el1, x3
    ldp     x2, x3, [sp, #{fpcr}]
    msr     fpcr, x2
    msr     fpsr, x3
    add     x2, sp, #{q}
    ldp     q0, q1, [x2]
    ldp     q2, q3, [x2, #32]
    ldp     q4, q5, [x2, #64]
    ldp     q6, q7, [x2, #96]
    ldp     q8, q9, [x2, #128]
    ldp     q10, q11, [x2, #160]
    ldp     q12, q13, [x2, #192]
    ldp     q14, q15, [x2, #224]
    ldp     q16, q17, [x2, #256]
    ldp     q18, q19, [x2, #288]
    ldp     q20, q21, [x2, #320]
    ldp     q22, q23, [x2, #352]
    ldp     q24, q25, [x2, #384]
    ldp     q26, q27, [x2, #416]
    ldp     q28, q29, [x2, #448]
    ldp     q30, q31, [x2, #480]
    ldp     x4, x5, [sp, #32]
    ldp     x6, x7, [sp, #48]
    ldp     x8, x9, [sp, #64]
    ldp     x10, x11, [sp, #80]
    ldp     x12, x13, [sp, #96]
    ldp     x14, x15, [sp, #112]
    ldp     x16, x17, [sp, #128]
    ldp     x18, x19, [sp, #144]
    ldp     x20, x21, [sp, #160]
    ldp     x22, x23, [sp, #176]
    ldp     x24, x25, [sp, #192]
    ldp     x26, x27, [sp, #208]
    ldp     x28, x29, [sp, #224]
    ldr     x30, [sp, #240]
    ldp     x2, x3, [sp, #16]
    ldp     x0, x1, [sp]
    add     sp, sp, #{size}
    eret
    "#,
    size = const SIZE,
    sp = const SP,
    elr = const ELR,
    fpcr = const FPCR,
    q = const Q,
);

unsafe extern "C" {
    /// The vector table; only its address is used.
    pub(super) static magpie_vectors: [u8; 0x800];
}
