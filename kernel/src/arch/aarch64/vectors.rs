//! The exception vectors: save every register, call Rust on a stack of the core's own, restore every register.
//!
//! Nothing is written to the interrupted stack, because it may have no room left. Where the registers go, and on which
//! stacks the handlers run, is described in [`stack_layout`](crate::arch::stack_layout).

use core::arch::global_asm;

use super::exceptions::SVC;
use super::frame::{ELR, FPCR, Q, SIZE, SP};
use super::locked_append;
use crate::arch::stack_layout::{FAULT_STACK_BYTES, FRAME_IN_BLOCK, SEQUENCE_IN_BLOCK};

global_asm!(
    r#"
    // All: save x0, x1 and the stack pointer in the frame, whose address is in x0 afterwards.

    // The frame is in the block of the interrupted stack, to which TPIDR_EL0 points. It is not in use: interrupts are
    // masked while a handler runs, which ends no section of the interrupted code's, and code that is suspended in it is on no core.
    .macro ENTER_INTERRUPT
        msr     tpidrro_el0, x0
        ENTER_INTERRUPT_WITHOUT_X0 magpie_interrupt_entry
    .endm

    .macro ENTER_INTERRUPT_WITHOUT_X0 handler
        mrs     x0, tpidr_el0
        add     x0, x0, #{frame_in_block}
        str     x1, [x0, #8]
        mov     x1, sp
        str     x1, [x0, #{sp}]
        mrs     x1, tpidrro_el0
        str     x1, [x0]
        mrs     x1, sp_el0
        sub     sp, x1, #{fault_bytes}
        b       \handler
    .endm

    // The frame is at the top of the core's fault stack or, for a fault on that stack, below what is in use of it.
    .macro ENTER_FAULT handler
        msr     tpidrro_el0, x0
        ENTER_FAULT_WITHOUT_X0 \handler
    .endm

    // The trap at a section's end goes the way of an interrupt, because it may leave the turn as one does; all else is a fault.
    .macro ENTER_SYNCHRONOUS
        msr     tpidrro_el0, x0
        mrs     x0, esr_el1
        lsr     x0, x0, #26
        cmp     x0, #{svc}
        b.eq    2f
        ENTER_FAULT_WITHOUT_X0 magpie_synchronous_entry
    2:  ENTER_INTERRUPT_WITHOUT_X0 magpie_synchronous_entry
    .endm

    .macro ENTER_FAULT_WITHOUT_X0 handler
        mrs     x0, sp_el0
        sub     x0, sp, x0
        cmn     x0, #{fault_bytes}      // carry: 0 < top - sp <= bytes
        mrs     x0, sp_el0
        b.cc    1f
        mov     x0, sp
        and     x0, x0, #0xfffffffffffffff0
    1:  sub     x0, x0, #{size}
        str     x1, [x0, #8]
        mov     x1, sp
        str     x1, [x0, #{sp}]
        mrs     x1, tpidrro_el0
        str     x1, [x0]
        mov     sp, x0
        b       \handler
    .endm

    // Saves the rest in the frame at x0. Where the code was is in x2 afterwards.
    .macro SAVE
        stp     x2, x3, [x0, #16]
        stp     x4, x5, [x0, #32]
        stp     x6, x7, [x0, #48]
        stp     x8, x9, [x0, #64]
        stp     x10, x11, [x0, #80]
        stp     x12, x13, [x0, #96]
        stp     x14, x15, [x0, #112]
        stp     x16, x17, [x0, #128]
        stp     x18, x19, [x0, #144]
        stp     x20, x21, [x0, #160]
        stp     x22, x23, [x0, #176]
        stp     x24, x25, [x0, #192]
        stp     x26, x27, [x0, #208]
        stp     x28, x29, [x0, #224]
        str     x30, [x0, #240]
        mrs     x2, elr_el1
        mrs     x3, spsr_el1
        stp     x2, x3, [x0, #{elr}]
        mrs     x3, fpcr
        mrs     x4, fpsr
        stp     x3, x4, [x0, #{fpcr}]
        stp     q0, q1, [x0, #{q}]
        stp     q2, q3, [x0, #{q} + 32]
        stp     q4, q5, [x0, #{q} + 64]
        stp     q6, q7, [x0, #{q} + 96]
        stp     q8, q9, [x0, #{q} + 128]
        stp     q10, q11, [x0, #{q} + 160]
        stp     q12, q13, [x0, #{q} + 192]
        stp     q14, q15, [x0, #{q} + 224]
        stp     q16, q17, [x0, #{q} + 256]
        stp     q18, q19, [x0, #{q} + 288]
        stp     q20, q21, [x0, #{q} + 320]
        stp     q22, q23, [x0, #{q} + 352]
        stp     q24, q25, [x0, #{q} + 384]
        stp     q26, q27, [x0, #{q} + 416]
        stp     q28, q29, [x0, #{q} + 448]
        stp     q30, q31, [x0, #{q} + 480]
    .endm

    .section .text.vectors, "ax"
    .balign 0x800
    .global magpie_vectors
magpie_vectors:
    // From the current EL on SP_EL0: never used.
    .balign 0x80
    ENTER_FAULT magpie_unexpected
    .balign 0x80
    ENTER_FAULT magpie_unexpected
    .balign 0x80
    ENTER_FAULT magpie_unexpected
    .balign 0x80
    ENTER_FAULT magpie_unexpected
    // From the current EL on SP_EL1: the kernel.
    .balign 0x80
    ENTER_SYNCHRONOUS
    .balign 0x80
    ENTER_INTERRUPT
    .balign 0x80
    ENTER_FAULT magpie_unexpected
    .balign 0x80
    ENTER_FAULT magpie_unexpected
    // From a lower EL: never used.
    .rept 8
    .balign 0x80
    ENTER_FAULT magpie_unexpected
    .endr
    .balign 0x80

magpie_synchronous_entry:
    SAVE
    mov     x19, x0
    bl      magpie_synchronous
    mov     x0, x19
    b       magpie_restore

magpie_unexpected:
    SAVE
    mov     x19, x0
    bl      magpie_unexpected_exception
    mov     x0, x19
    b       magpie_restore

magpie_interrupt_entry:
    SAVE
    // If it came into a sequence that holds a lock, that is taken back first.
    ldur    x1, [x0, #{sequence_in_block} - {frame_in_block}]
    sub     x2, x2, x1
    cmp     x2, #{most_bytes}
    mov     x19, x0
    b.lo    2f
3:
    bl      magpie_interrupt
    mov     x0, x19
    // Falls through.

    // Continues the code whose frame is at x0.
    .global magpie_restore
magpie_restore:
    ldp     x2, x3, [x0, #{elr}]
    msr     elr_el1, x2
    msr     spsr_el1, x3
    ldp     x2, x3, [x0, #{fpcr}]
    msr     fpcr, x2
    msr     fpsr, x3
    ldr     x2, [x0, #{sp}]
    mov     sp, x2
    ldp     q0, q1, [x0, #{q}]
    ldp     q2, q3, [x0, #{q} + 32]
    ldp     q4, q5, [x0, #{q} + 64]
    ldp     q6, q7, [x0, #{q} + 96]
    ldp     q8, q9, [x0, #{q} + 128]
    ldp     q10, q11, [x0, #{q} + 160]
    ldp     q12, q13, [x0, #{q} + 192]
    ldp     q14, q15, [x0, #{q} + 224]
    ldp     q16, q17, [x0, #{q} + 256]
    ldp     q18, q19, [x0, #{q} + 288]
    ldp     q20, q21, [x0, #{q} + 320]
    ldp     q22, q23, [x0, #{q} + 352]
    ldp     q24, q25, [x0, #{q} + 384]
    ldp     q26, q27, [x0, #{q} + 416]
    ldp     q28, q29, [x0, #{q} + 448]
    ldp     q30, q31, [x0, #{q} + 480]
    ldp     x4, x5, [x0, #32]
    ldp     x6, x7, [x0, #48]
    ldp     x8, x9, [x0, #64]
    ldp     x10, x11, [x0, #80]
    ldp     x12, x13, [x0, #96]
    ldp     x14, x15, [x0, #112]
    ldp     x16, x17, [x0, #128]
    ldp     x18, x19, [x0, #144]
    ldp     x20, x21, [x0, #160]
    ldp     x22, x23, [x0, #176]
    ldp     x24, x25, [x0, #192]
    ldp     x26, x27, [x0, #208]
    ldp     x28, x29, [x0, #224]
    ldr     x30, [x0, #240]
    ldp     x2, x3, [x0, #16]
    ldp     x0, x1, [x0]
    eret

2:
    bl      magpie_withdraw
    mov     x0, x19
    b       3b
    "#,
    size = const SIZE,
    sp = const SP,
    elr = const ELR,
    fpcr = const FPCR,
    q = const Q,
    fault_bytes = const FAULT_STACK_BYTES,
    svc = const SVC,
    frame_in_block = const FRAME_IN_BLOCK,
    sequence_in_block = const SEQUENCE_IN_BLOCK,
    most_bytes = const locked_append::MOST_BYTES,
);

unsafe extern "C" {
    /// The vector table; only its address is used.
    pub(super) static magpie_vectors: [u8; 0x800];
}
