//! The double swap: two table slots exchange their pointers, wait-free, over the language's atomics.
//!
//! The algorithm is that of C∀'s actor executor (`try_swap_queues`). Only the owner of a slot ever makes
//! it null, and only for the length of one swap:
//!
//! 1. load the thief's slot and the victim's; a null in the victim's means its owner is swapping: give up;
//! 2. take out: exchange the thief's slot from its pointer to null; failing means another thief took that pointer: give
//!    up;
//! 3. exchange the victim's slot from its pointer to the thief's; failing means somebody was faster: put the thief's
//!    pointer back, give up;
//! 4. put the victim's pointer into the thief's slot.
//!
//! So every pointer is in exactly one slot, or in the hands of exactly one thief, at every moment. Each
//! step is one attempt: a store-exclusive that fails for no reason is a failed steal, and every call ends
//! after two attempts and one store. Success is not lock-free: thieves in a circle can all fail.
//!
//! Orderings. What a thief learns with a pointer (what its last holder wrote before the pointer was put
//! into the slot) must reach whoever reads the pointer next:
//! - both exchanges acquire, pairing with the releases in steps 3 and 4 of an earlier swap;
//! - step 3 is also a release: it pairs with the acquire of whoever reads the victim's slot next, and it keeps step 2
//!   before it, so that nobody sees the thief's pointer in both slots;
//! - step 4 is a release: it pairs with the acquire of whoever reads the thief's slot next, and it keeps step 3
//!   before it, so that nobody sees the victim's pointer in both slots. With exclusives this is not free: a plain
//!   store after a successful STLXR can be seen before it;
//! - the restore in step 3 is a release for the same reason: it publishes again what step 2 acquired.
//!
//! That a pointer stands for the same thing throughout is the caller's part: the mailboxes it points to
//! are neither freed nor recycled while thieves run.

use core::ptr::NonNull;

use super::exclusive::once_ptr;
use crate::arch::SwapOutcome;
use crate::arch::atomic::{AtomicPtr, Ordering};

/// Exchanges the pointers in the thief's slot and the victim's, once. The thief's belongs to the caller: nobody else makes
/// it null, so the caller finds a pointer in it. The two slots differ.
#[inline]
pub fn double_swap<T>(thief_slot: &AtomicPtr<T>, victim_slot: &AtomicPtr<T>) -> SwapOutcome<T> {
    // Relaxed: the exchanges below check both and acquire.
    let thief_pointer = thief_slot.load(Ordering::Relaxed);
    let victim_pointer = victim_slot.load(Ordering::Relaxed);
    let Some(given) = NonNull::new(thief_pointer) else {
        debug_assert!(false, "the thief's own slot is null: it is swapping twice at once");
        return SwapOutcome::LostThiefSlot;
    };
    let Some(gained) = NonNull::new(victim_pointer) else {
        return SwapOutcome::VictimSlotNull;
    };
    // Acquire: pairs with the releases below, in the swap that put this pointer here.
    if !once_ptr(thief_slot, thief_pointer, core::ptr::null_mut(), Ordering::Acquire) {
        return SwapOutcome::LostThiefSlot;
    }
    // Acquire and release: see above.
    if !once_ptr(victim_slot, victim_pointer, thief_pointer, Ordering::AcqRel) {
        // Release: publishes again what the first exchange acquired.
        thief_slot.store(thief_pointer, Ordering::Release);
        return SwapOutcome::LostVictimSlot;
    }
    // Release: pairs with the acquire of the next thief, and of the owner, that reads this slot.
    thief_slot.store(victim_pointer, Ordering::Release);
    SwapOutcome::Swapped { gained, given }
}
