//! The double swap of two table slots, as LDXR/STXR assembly.
//!
//! The algorithm in its four steps, and what must be ordered, are those of `arch/portable/swap.rs`. In the
//! Arm model's terms:
//!
//! - steps 2 and 3 load with LDAXR: it pairs with the STLXR or STLR that put the pointer there, so what
//!   was written before the pointer is seen by its next holder;
//! - step 3 stores with STLXR: everything before it, step 2's store of null included, is seen first;
//! - step 4 and the restore store with STLR: a plain STR after a successful STLXR can be seen before it,
//!   and then one pointer would be seen in two slots.
//!
//! Step 2's store of null is a plain STXR: a null publishes nothing. `may_fail!` expands to nothing except in tests.

use core::ptr::NonNull;

use super::exclusive_asm::{exclusive_asm, may_fail};
use crate::arch::SwapOutcome;
use crate::arch::atomic::AtomicPtr;

const SWAPPED: u64 = 0;
const LOST_THIEF_SLOT: u64 = 1;
const LOST_VICTIM_SLOT: u64 = 2;

/// Exchanges the pointers in the thief's slot and the victim's, once. The thief's belongs to the caller: nobody else makes
/// it null, so the caller finds a pointer in it. The two slots differ.
#[inline]
pub fn double_swap<T>(thief_slot: &AtomicPtr<T>, victim_slot: &AtomicPtr<T>) -> SwapOutcome<T> {
    use crate::arch::atomic::Ordering::Relaxed;
    // Step 1. Relaxed: the exclusive loads below check both and acquire.
    let thief_pointer = thief_slot.load(Relaxed);
    let victim_pointer = victim_slot.load(Relaxed);
    let Some(given) = NonNull::new(thief_pointer) else {
        debug_assert!(false, "the thief's own slot is null: it is swapping twice at once");
        return SwapOutcome::LostThiefSlot;
    };
    let Some(gained) = NonNull::new(victim_pointer) else {
        return SwapOutcome::VictimSlotNull;
    };
    let outcome: u64;
    // SAFETY: both references are valid for the accesses, which are single-copy atomic. That nobody else
    // writes the thief's slot between step 2 and the last store follows from the protocol: others exchange it only
    // from a pointer, and it is null.
    unsafe {
        exclusive_asm!(fails(force_thief, force_victim);
            "mov {outcome:w}, {lost_thief_slot}",
            // Step 2. Acquire: pairs with STLXR and STLR below, in an earlier swap.
            "ldaxr {x}, [{thief_slot}]",
            "cmp {x}, {tp}",
            "b.ne 9f",
            may_fail!("force_thief"),
            "stxr {w:w}, xzr, [{thief_slot}]",
            "cbnz {w:w}, 9f",
            // Step 3. Acquire as above; release: pairs with whoever loads the victim's slot next, and keeps step 2
            // before it.
            "ldaxr {x}, [{victim_slot}]",
            "cmp {x}, {vp}",
            "b.ne 7f",
            may_fail!("force_victim"),
            "stlxr {w:w}, {tp}, [{victim_slot}]",
            "cbnz {w:w}, 7f",
            // Step 4. Release: pairs with whoever loads the thief's slot next, and keeps step 3 before it.
            "stlr {vp}, [{thief_slot}]",
            "mov {outcome:w}, {swapped}",
            "b 9f",
            "7:",
            // Restore. Release: publishes again what step 2 acquired.
            "stlr {tp}, [{thief_slot}]",
            "mov {outcome:w}, {lost_victim_slot}",
            "9:",
            thief_slot = in(reg) thief_slot.as_ptr(),
            victim_slot = in(reg) victim_slot.as_ptr(),
            tp = in(reg) thief_pointer,
            vp = in(reg) victim_pointer,
            x = out(reg) _,
            w = out(reg) _,
            outcome = out(reg) outcome,
            swapped = const SWAPPED,
            lost_thief_slot = const LOST_THIEF_SLOT,
            lost_victim_slot = const LOST_VICTIM_SLOT,
            options(nostack),
        );
    }
    match outcome {
        SWAPPED => SwapOutcome::Swapped { gained, given },
        LOST_THIEF_SLOT => SwapOutcome::LostThiefSlot,
        _ => SwapOutcome::LostVictimSlot,
    }
}
