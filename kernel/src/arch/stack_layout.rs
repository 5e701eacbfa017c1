//! The shape of a stack's slot and of a core's stacks for exceptions: what the vectors, boot and the linker script rely
//! on. Who owns a stack is in `mem::stack`.
//!
//! ```text
//! slot, aligned to its size          of each core, below the address in SP_EL0
//! +---------------------+ high       +-----------------+
//! | block               |            | fault stack     |
//! +---------------------+            +-----------------+
//! | stack, grows down   |            | interrupt stack |
//! +---------------------+            +-----------------+
//! | reserve             |
//! +---------------------+
//! | guard, not mapped   |
//! +---------------------+ low
//! ```
//!
//! An interrupt saves the registers of the code that it interrupts in the block of that code's stack, and runs on the
//! interrupt stack; so it needs no room on the interrupted stack, however little of that is left. So does the trap at the end of a
//! section, which may leave the stack as an interrupt does. A fault saves them on the fault stack, and runs there.
//!
//! The reserve is not mapped either. It is for a section of the kernel's that runs out of stack with preemption disabled, and
//! so cannot be ended where it is: the reserve is mapped, the section ends, and then its process does.

use core::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of the slot that the boot core begins on, for which the linker script makes room.
pub const BOOT_SLOT_BYTES: usize = 64 * 1024;
/// Bytes of every other slot are a multiple of this; they are aligned to their size.
pub const SLOT_UNIT_BYTES: usize = 64 * 1024;
/// The largest slots.
pub const MOST_SLOT_BYTES: usize = 1024 * 1024;
/// Bytes at the low end of a slot that are never mapped.
pub const GUARD_BYTES: usize = 4 * 1024;
/// Bytes above the guard that are mapped while a section of the kernel's needs them to end.
pub const RESERVE_BYTES: usize = 8 * 1024;
/// Bytes at the high end of a slot that are the block.
pub const BLOCK_BYTES: usize = 1024;
/// Where in the block the registers of interrupted code are.
pub const FRAME_IN_BLOCK: usize = 64;
/// Where in the block the charged reductions are.
pub const CHARGED_IN_BLOCK: usize = 16;
/// Where in the block the beginning of the sequence is that holds a lock, or did last: `locked_append`.
pub const SEQUENCE_IN_BLOCK: usize = 24;
/// Bytes of the stack on which a core handles faults.
pub const FAULT_STACK_BYTES: usize = 16 * 1024;
/// Bytes of the stack on which a core handles interrupts.
pub const INTERRUPT_STACK_BYTES: usize = 16 * 1024;
/// Bytes of both.
pub const EXCEPTION_STACK_BYTES: usize = FAULT_STACK_BYTES + INTERRUPT_STACK_BYTES;

const _: () = {
    assert!(BOOT_SLOT_BYTES.is_power_of_two() && SLOT_UNIT_BYTES.is_power_of_two());
    assert!(MOST_SLOT_BYTES.is_multiple_of(SLOT_UNIT_BYTES));
    assert!(GUARD_BYTES.is_multiple_of(4096) && RESERVE_BYTES.is_multiple_of(4096), "whole pages");
    assert!(GUARD_BYTES + RESERVE_BYTES + BLOCK_BYTES < BOOT_SLOT_BYTES / 2, "most of a slot is stack");
    assert!(FRAME_IN_BLOCK < BLOCK_BYTES && FAULT_STACK_BYTES.is_multiple_of(16));
};

/// Bytes of a slot in the pool.
static SLOT_BYTES: AtomicUsize = AtomicUsize::new(SLOT_UNIT_BYTES);

/// Bytes of a slot in the pool.
pub fn slot_bytes() -> usize {
    // Relaxed: written before the first of them is made.
    SLOT_BYTES.load(Ordering::Relaxed)
}

/// Sets the bytes of a slot in the pool.
///
/// # Safety
/// A multiple of [`SLOT_UNIT_BYTES`], up to [`MOST_SLOT_BYTES`]; no slot was made yet, and no other core runs.
pub unsafe fn set_slot_bytes(bytes: usize) {
    // Relaxed: other cores are started later.
    SLOT_BYTES.store(bytes, Ordering::Relaxed);
}

/// Bytes that code can use in a slot of this many bytes.
pub const fn usable_bytes(slot: usize) -> usize {
    slot - GUARD_BYTES - RESERVE_BYTES - BLOCK_BYTES
}

/// Bytes of the slot with the block at `block`.
fn bytes_of(block: usize) -> usize {
    #[cfg(target_os = "none")]
    if block == crate::arch::image::boot_stack_block().addr() {
        return BOOT_SLOT_BYTES;
    }
    let _ = block;
    slot_bytes()
}

/// Where an address lies, seen from a stack.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StackPart {
    /// In the guard.
    Guard,
    /// In the reserve.
    Reserve,
    /// Between reserve and block, or just above the last byte of it: where a stack pointer may be.
    Stack,
    /// Elsewhere.
    Outside,
}

/// Where the reserve begins of the stack with the block at `block`.
pub fn reserve_start(block: usize) -> usize {
    block + BLOCK_BYTES - bytes_of(block) + GUARD_BYTES
}

/// Whether a stack pointer is that of code on the stack with the block at `block`.
pub fn is_on(block: usize, sp: usize) -> bool {
    matches!(place_in_slot(block, sp), StackPart::Stack | StackPart::Reserve)
}

/// Where `address` lies, seen from the stack with the block at `block`.
pub fn place_in_slot(block: usize, address: usize) -> StackPart {
    place_in(block, bytes_of(block), address)
}

const fn place_in(block: usize, slot: usize, address: usize) -> StackPart {
    let Some(start) = (block + BLOCK_BYTES).checked_sub(slot) else { return StackPart::Outside };
    if address < start || address > block {
        StackPart::Outside
    } else if address < start + GUARD_BYTES {
        StackPart::Guard
    } else if address < start + GUARD_BYTES + RESERVE_BYTES {
        StackPart::Reserve
    } else {
        StackPart::Stack
    }
}

#[cfg(test)]
mod tests {
    use super::{
        BLOCK_BYTES, GUARD_BYTES, RESERVE_BYTES, SLOT_UNIT_BYTES, StackPart, place_in, place_in_slot,
        reserve_start,
    };

    #[test]
    fn each_end_of_each_part_is_told_from_its_neighbour() {
        let start = 5 * SLOT_UNIT_BYTES;
        let block = start + SLOT_UNIT_BYTES - BLOCK_BYTES;
        let place = |address| place_in_slot(block, address);
        assert_eq!(place(start - 1), StackPart::Outside);
        assert_eq!(place(start), StackPart::Guard);
        assert_eq!(place(start + GUARD_BYTES - 1), StackPart::Guard);
        assert_eq!(place(start + GUARD_BYTES), StackPart::Reserve);
        assert_eq!(reserve_start(block), start + GUARD_BYTES);
        assert_eq!(place(start + GUARD_BYTES + RESERVE_BYTES - 1), StackPart::Reserve);
        assert_eq!(place(start + GUARD_BYTES + RESERVE_BYTES), StackPart::Stack);
        assert_eq!(place(block), StackPart::Stack);
        assert_eq!(place(block + 1), StackPart::Outside);
        assert_eq!(place(0), StackPart::Outside);
        assert_eq!(place_in_slot(0, 0), StackPart::Outside);
    }

    #[test]
    fn a_larger_slot_begins_lower() {
        let slot = 3 * SLOT_UNIT_BYTES;
        let (start, block) = (5 * SLOT_UNIT_BYTES, 8 * SLOT_UNIT_BYTES - BLOCK_BYTES);
        assert_eq!(place_in(block, slot, start - 1), StackPart::Outside);
        assert_eq!(place_in(block, slot, start), StackPart::Guard);
        assert_eq!(place_in(block, slot, start + GUARD_BYTES + RESERVE_BYTES), StackPart::Stack);
        assert_eq!(place_in(block, slot, block), StackPart::Stack);
    }
}
