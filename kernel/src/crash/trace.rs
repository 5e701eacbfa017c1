//! A backtrace: where code was called from, as far as its stack tells.

use core::fmt;
use core::ops::Range;

use crate::arch::backtrace::Place;
use crate::mem::stack::StackBlock;

/// Return addresses that are kept.
const CALLS: usize = 16;

/// Where code was called from, the innermost first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Trace {
    calls: [usize; CALLS],
    used: u8,
}

impl Trace {
    /// Of code of which nothing is known.
    pub(crate) const EMPTY: Self = Self { calls: [0; CALLS], used: 0 };

    /// Of the code at `place`.
    ///
    /// # Safety
    /// `stack` is mapped; the code at `place` is the caller or one that called it, or was stopped there and stays.
    // Once, for the size of an image.
    #[inline(never)]
    pub(crate) unsafe fn from(mut place: Place, stack: &Range<usize>) -> Self {
        let mut trace = Self::EMPTY;
        for call in &mut trace.calls {
            // SAFETY: by contract.
            let Some(caller) = (unsafe { place.caller(stack) }) else { break };
            place = caller;
            *call = caller.pc;
            trace.used += 1;
        }
        trace
    }

    pub(crate) fn addresses(&self) -> &[usize] {
        self.calls.get(..usize::from(self.used)).unwrap_or(&self.calls)
    }
}

/// A line with an instruction, and where the code there was called from. The host tool gives names to the addresses.
pub(crate) struct Called<'a>(pub usize, pub &'a Trace);

impl fmt::Display for Called<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "  backtrace {:016x}", self.0)?;
        self.1.addresses().iter().try_for_each(|address| write!(f, " {address:016x}"))
    }
}

/// The part of the stack with this block that may be read for code with its stack pointer at `sp`.
pub(crate) fn stack_at(block: &StackBlock, sp: usize) -> Range<usize> {
    let (start, bytes) = block.in_use(sp);
    start.addr()..start.addr() + bytes
}
