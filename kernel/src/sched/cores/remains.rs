//! What crashed code leaves on its stack: noted for the collection, and overwritten, a little at a time. When that is done is in
//! `sched/run/remains.rs`.

use super::handover::{Cause, Crashed};
use crate::arch::clock;
use crate::arch::switch::Frame;
use crate::mem::orphans;
use crate::mem::stack::StackBlock;

/// So much is noted at a time: some 700 instructions.
const NOTED_BYTES: usize = 256;

/// So much is overwritten at a time.
const CLEARED_BYTES: usize = 4096;

/// What is left to be done about a stack.
#[derive(Clone, Copy)]
pub(crate) struct Remains {
    /// The stack, which nothing runs on.
    pub block: &'static StackBlock,
    /// When the code crashed, in clock ticks.
    pub since: u64,
    to_note: Part,
    to_clear: Part,
}

impl Remains {
    /// Of what has crashed. Notes its registers. With preemption disabled.
    pub(crate) fn new(Crashed { block, cause }: Crashed) -> Self {
        let frame = block.saved();
        if cause != Cause::Panicked {
            // Where it panicked they are on its stack.
            // SAFETY: the frame is complete, and nobody writes to it.
            unsafe { orphans::note(frame.cast::<u8>(), size_of::<Frame>()) };
        }
        // SAFETY: as above.
        let sp = unsafe { (*frame).stack_pointer() };
        // In whole words, or one would be in neither of two parts.
        let sp = sp & !(align_of::<usize>() - 1);
        Self {
            block,
            since: clock::now(),
            to_note: Part::in_use(block, sp),
            to_clear: Part::in_use(block, 0),
        }
    }

    /// Notes a little. Whether there was something to note.
    ///
    /// # Safety
    /// Preemption is disabled, and nobody but the caller writes to the stack.
    pub(crate) unsafe fn note(&mut self) -> bool {
        let Some(part) = self.to_note.split_off(NOTED_BYTES) else { return false };
        // SAFETY: that part of the stack is mapped; the rest the caller promised.
        unsafe { orphans::note(part.start, part.bytes) };
        true
    }

    /// Overwrites a little. Whether there was something left.
    ///
    /// # Safety
    /// Nothing that is on the stack is used again, and all of it is noted. The caller runs on another.
    pub(crate) unsafe fn clear(&mut self) -> bool {
        let Some(part) = self.to_clear.split_off(CLEARED_BYTES) else { return false };
        // SAFETY: that part of the stack is mapped; the rest the caller promised.
        unsafe { part.start.write_bytes(0, part.bytes) };
        true
    }
}

/// Some of a stack's memory.
#[derive(Clone, Copy)]
struct Part {
    start: *mut u8,
    bytes: usize,
}

impl Part {
    /// What is in use of a stack by code with its stack pointer at `sp`.
    fn in_use(block: &StackBlock, sp: usize) -> Self {
        let (start, bytes) = block.in_use(sp);
        Self { start: start.cast_mut(), bytes }
    }

    /// Its first bytes, so many at most, which are no part of it any more; `None` if nothing is left.
    fn split_off(&mut self, most: usize) -> Option<Self> {
        let first = Self { start: self.start, bytes: self.bytes.min(most) };
        *self = Self { start: self.start.wrapping_add(first.bytes), bytes: self.bytes - first.bytes };
        (first.bytes != 0).then_some(first)
    }
}
