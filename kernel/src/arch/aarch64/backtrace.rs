//! Following a stack from a function to its callers, by the compiler's tables.
//!
//! The stack may be broken, so nothing on it is believed: what is read lies between the stack pointer and the end of the stack that
//! the caller names; each frame ends above the one before; a return address lies in the image's code, or the walk is over.

use core::arch::asm;
use core::ops::Range;

use super::frame::Frame;
use super::image;
use crate::arch::unwind_tables::{Base, Kept, Rules};

/// Where code is: what its callers are found from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Place {
    /// Its instruction.
    pub pc: usize,
    /// Its stack pointer.
    pub sp: usize,
    x29: usize,
    x30: usize,
    /// It was stopped there, as opposed to having called: its registers are all known.
    is_stopped: bool,
}

impl Place {
    /// In the caller.
    #[inline(always)]
    pub fn here() -> Self {
        let (pc, sp, x29, x30);
        // SAFETY: reads registers.
        unsafe {
            asm!(
                "adr {pc}, .",
                "mov {sp}, sp",
                "mov {x29}, x29",
                "mov {x30}, x30",
                pc = out(reg) pc,
                sp = out(reg) sp,
                x29 = out(reg) x29,
                x30 = out(reg) x30,
                options(nomem, nostack, preserves_flags)
            )
        };
        Self { pc, sp, x29, x30, is_stopped: true }
    }

    /// Where the code was stopped whose registers these are.
    pub fn stopped_in(frame: &Frame) -> Self {
        Self {
            pc: frame.elr as usize,
            sp: frame.sp as usize,
            x29: frame.x[29] as usize,
            x30: frame.x[30] as usize,
            is_stopped: true,
        }
    }

    /// Where it was called from, if that can be told. `stack` is what may be read.
    ///
    /// # Safety
    /// `stack` is mapped memory, of a stack of which the code is at this place, or was stopped there and stays.
    pub unsafe fn caller(&self, stack: &Range<usize>) -> Option<Self> {
        // A return address may be the first of what follows the function: a call that never returns can be its last instruction.
        let instruction = if self.is_stopped { self.pc } else { self.pc.wrapping_sub(4) };
        let rules = match image::unwind_tables().rules_at(instruction as u64) {
            Some(rules) => rules,
            // It was called there by mistake, and has done nothing.
            None if self.is_stopped => Rules::LEAF,
            None => return None,
        };
        let base = match rules.base {
            Base::Sp => self.sp,
            Base::X29 => self.x29,
        };
        let end = base.wrapping_add_signed(rules.offset as isize);
        let ascends = end > self.sp || (end == self.sp && self.is_stopped);
        if !ascends || end > stack.end {
            return None;
        }
        let value = |kept, register| match kept {
            Kept::InPlace => Some(register),
            Kept::At(offset) => {
                let at = end.wrapping_add_signed(offset as isize);
                let first = stack.start.max(self.sp);
                let is_inside = at >= first && at < end && end - at >= size_of::<usize>();
                // SAFETY: inside the stack, which is mapped by contract; aligned.
                (is_inside && at.is_multiple_of(align_of::<usize>()))
                    .then(|| unsafe { core::ptr::with_exposed_provenance::<usize>(at).read_volatile() })
            }
            Kept::Lost => None,
        };
        // After a call the register has that call's return address.
        if !self.is_stopped && rules.x30 == Kept::InPlace {
            return None;
        }
        let pc = value(rules.x30, self.x30)?;
        if !pc.is_multiple_of(4) || !image::code().contains(&pc) {
            return None;
        }
        // Most functions can do without it.
        let x29 = value(rules.x29, self.x29).unwrap_or(0);
        Some(Self { pc, sp: end, x29, x30: 0, is_stopped: false })
    }
}
