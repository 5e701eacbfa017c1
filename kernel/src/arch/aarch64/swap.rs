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
const LOST_MINE: u64 = 1;
const LOST_HIS: u64 = 2;

/// Exchanges the pointers in `mine`, the thief's slot, and `his`, the victim's slot, once. `mine` belongs to the
/// caller: nobody else makes it null, so the caller finds a pointer in it. The two slots differ.
#[inline]
pub fn double_swap<T>(mine: &AtomicPtr<T>, his: &AtomicPtr<T>) -> SwapOutcome<T> {
    use crate::arch::atomic::Ordering::Relaxed;
    // Step 1. Relaxed: the exclusive loads below check both and acquire.
    let my_pointer = mine.load(Relaxed);
    let his_pointer = his.load(Relaxed);
    let Some(given) = NonNull::new(my_pointer) else {
        debug_assert!(false, "the thief's own slot is null: it is swapping twice at once");
        return SwapOutcome::LostMine;
    };
    let Some(gained) = NonNull::new(his_pointer) else {
        return SwapOutcome::VictimSlotNull;
    };
    let outcome: u64;
    // SAFETY: both references are valid for the accesses, which are single-copy atomic. That nobody else
    // writes `mine` between step 2 and the last store follows from the protocol: others exchange it only
    // from a pointer, and it is null.
    unsafe {
        exclusive_asm!(fails(force_mine, force_his);
            "mov {outcome:w}, {lost_mine}",
            // Step 2. Acquire: pairs with STLXR and STLR below, in an earlier swap.
            "ldaxr {x}, [{mine}]",
            "cmp {x}, {mp}",
            "b.ne 9f",
            may_fail!("force_mine"),
            "stxr {w:w}, xzr, [{mine}]",
            "cbnz {w:w}, 9f",
            // Step 3. Acquire as above; release: pairs with whoever loads `his` next, and keeps step 2
            // before it.
            "ldaxr {x}, [{his}]",
            "cmp {x}, {hp}",
            "b.ne 7f",
            may_fail!("force_his"),
            "stlxr {w:w}, {mp}, [{his}]",
            "cbnz {w:w}, 7f",
            // Step 4. Release: pairs with whoever loads `mine` next, and keeps step 3 before it.
            "stlr {hp}, [{mine}]",
            "mov {outcome:w}, {swapped}",
            "b 9f",
            "7:",
            // Restore. Release: publishes again what step 2 acquired.
            "stlr {mp}, [{mine}]",
            "mov {outcome:w}, {lost_his}",
            "9:",
            mine = in(reg) mine.as_ptr(),
            his = in(reg) his.as_ptr(),
            mp = in(reg) my_pointer,
            hp = in(reg) his_pointer,
            x = out(reg) _,
            w = out(reg) _,
            outcome = out(reg) outcome,
            swapped = const SWAPPED,
            lost_mine = const LOST_MINE,
            lost_his = const LOST_HIS,
            options(nostack),
        );
    }
    match outcome {
        SWAPPED => SwapOutcome::Swapped { gained, given },
        LOST_MINE => SwapOutcome::LostMine,
        _ => SwapOutcome::LostHis,
    }
}
