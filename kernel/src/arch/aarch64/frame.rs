//! What an exception saves: every register of the interrupted code.

use core::mem::{offset_of, size_of};

/// All registers of interrupted or suspended code. The vectors write and read it.
#[derive(Clone)]
#[repr(C, align(16))]
pub struct Frame {
    /// x0 to x30.
    pub x: [u64; 31],
    /// Where it continues.
    pub elr: u64,
    /// Its processor state.
    pub spsr: u64,
    /// Its stack pointer.
    pub sp: u64,
    /// Floating-point control.
    pub fpcr: u64,
    /// Floating-point status.
    pub fpsr: u64,
    /// q0 to q31: the target is hard-float, so any code may use them.
    pub q: [u128; 32],
}

impl Frame {
    /// A frame that holds no code's registers.
    pub const EMPTY: Self = Self { x: [0; 31], elr: 0, spsr: 0, sp: 0, fpcr: 0, fpsr: 0, q: [0; 32] };

    /// The instruction at which the code was stopped.
    pub(crate) fn place(&self) -> u64 {
        self.elr
    }

    /// Where the code's stack pointer was.
    pub(crate) fn stack_pointer(&self) -> usize {
        self.sp as usize
    }

    /// Says where the stack pointer is of code that has not saved its other registers.
    pub(crate) fn set_stack_pointer(&mut self, sp: usize) {
        self.sp = sp as u64;
    }
}

/// Bytes of a frame, for the assembly.
pub(super) const SIZE: usize = size_of::<Frame>();
pub(super) const ELR: usize = offset_of!(Frame, elr);
pub(super) const SPSR: usize = offset_of!(Frame, spsr);
pub(super) const SP: usize = offset_of!(Frame, sp);
pub(super) const FPCR: usize = offset_of!(Frame, fpcr);
pub(super) const Q: usize = offset_of!(Frame, q);

const _: () = {
    assert!(SIZE == 800);
    assert!(SIZE.is_multiple_of(16), "the stack pointer stays aligned");
    assert!(offset_of!(Frame, x) == 0);
    assert!(ELR == 31 * 8 && SPSR == ELR + 8, "stored as pairs");
    assert!(offset_of!(Frame, fpsr) == FPCR + 8, "stored as a pair");
    assert!(Q.is_multiple_of(16), "stored as pairs of quadwords");
};
