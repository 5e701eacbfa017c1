//! The operations of the work-stealing deque, as LDXR/STXR assembly.
//!
//! The algorithm, the meaning of the indices and the three pairs that must be ordered are those of
//! `arch/portable/deque_ops.rs`; here each operation is one block, so that the instructions that run are
//! the ones that were checked against the Arm memory model (`docs/verification.md`). In the model's terms:
//!
//! 1. *Item before index*: the slot's STR is before the STLR of `bottom` (anything is before a
//!    store-release); the thief's LDAR of `bottom` is before its LDR of the slot and before every access
//!    to the item (a load-acquire is before anything after it).
//! 2. *Decrement before look*: DMB ISH on both sides. STLR followed by LDAR would do on hardware, but QEMU
//!    on x86 lets the two pass each other; and on hardware STLR followed by LDR orders nothing.
//! 3. *Read before reuse*: the thief's LDR of the slot is before its STLXR of `top` (a store-release);
//!    the owner's LDAR of `top`, or LDAXR, is before its STR to the slot.
//!
//! An exclusive pair holds nothing but the comparison and the addition: no memory access stands between
//! LDXR and STXR. A pair that is left without a store leaves the monitor armed, which is harmless: the next
//! LDXR re-arms it, and taking an exception clears it. `may_fail!` expands to nothing except in tests.

use core::ptr::NonNull;

use super::exclusive_asm::{exclusive_asm, may_fail};
use crate::arch::atomic::{AtomicPtr, AtomicU64};
use crate::arch::{Full, Steal};

/// The block of one operation. `b` and `t` are registers of its own, for what it makes of `bottom` and `top`; `in` and `out` are
/// its other operands, and `fails` is as in `exclusive_asm!`.
macro_rules! deque_asm {
    (
        on($top:ident, $bottom:ident, $slots:ident),
        in($($given:ident = $value:expr),*),
        out($($found:ident => $place:tt),*),
        fails($($force:ident)?);
        $($instructions:tt)*
    ) => {
        exclusive_asm!(fails($($force)?);
            $($instructions)*
            top = in(reg) $top.as_ptr(),
            bottom = in(reg) $bottom.as_ptr(),
            slots = in(reg) $slots.as_ptr(),
            $($given = in(reg) $value,)*
            mask = in(reg) N - 1,
            b = out(reg) _,
            t = out(reg) _,
            $($found = out(reg) $place,)*
            options(nostack),
        )
    };
}

const EMPTY: u64 = 0;
const TAKEN: u64 = 1;

/// Puts an item at the bottom.
///
/// # Errors
/// [`Full`]; then the item stays the caller's.
///
/// # Safety
/// The caller is the deque's owner: no other core is inside `push_bottom`, `pop_bottom` or `pop_oldest`.
/// `N` is a power of two.
#[inline(always)]
pub unsafe fn push_bottom<T, const N: usize>(
    top: &AtomicU64,
    bottom: &AtomicU64,
    slots: &[AtomicPtr<T>; N],
    item: NonNull<T>,
) -> Result<(), Full> {
    let full: u64;
    // SAFETY: the three references are valid for the accesses, all of which are single-copy atomic; the
    // masked index is below `N`. That only the owner writes `bottom` and the slots is this function's
    // contract.
    unsafe {
        deque_asm!(on(top, bottom, slots), in(item = item.as_ptr(), n = N), out(full => full), fails();
            // Only this core writes bottom.
            "ldr {b}, [{bottom}]",
            // Acquire: pairs with STLXR in pop_top (3).
            "ldar {t}, [{top}]",
            "sub {t}, {b}, {t}",
            "cmp {t}, {n}",
            "cset {full:w}, ge",
            "b.ge 2f",
            "and {t}, {b}, {mask}",
            "str {item}, [{slots}, {t}, lsl #3]",
            "add {b}, {b}, #1",
            // Release: pairs with LDAR of bottom in pop_top (1).
            "stlr {b}, [{bottom}]",
            "2:",
        );
    }
    if full == 0 { Ok(()) } else { Err(Full) }
}

/// Takes the newest item.
///
/// # Safety
/// As for [`push_bottom`].
#[inline(always)]
pub unsafe fn pop_bottom<T, const N: usize>(
    top: &AtomicU64,
    bottom: &AtomicU64,
    slots: &[AtomicPtr<T>; N],
) -> Option<NonNull<T>> {
    let item: *mut T;
    // SAFETY: as for `push_bottom`.
    unsafe {
        deque_asm!(on(top, bottom, slots), in(), out(x => _, w => _, item => item), fails(force);
            "mov {item}, xzr",
            "ldr {b}, [{bottom}]",
            // A stale top makes the deque look fuller than it is: if this says empty, it is.
            "ldr {t}, [{top}]",
            "sub {x}, {b}, {t}",
            "cmp {x}, #0",
            "b.le 9f",
            "sub {b}, {b}, #1",
            // Release: a thief may read this store, and must still see the items below it (1). On Arm a
            // plain store would carry on what push_bottom's STLR began; the language's model has no such
            // rule, and the two versions stay alike.
            "stlr {b}, [{bottom}]",
            // Pairs with the DMB in pop_top (2).
            "dmb ish",
            "ldr {t}, [{top}]",
            "sub {x}, {b}, {t}",
            "cmp {x}, #0",
            "b.lt 8f",
            "and {x}, {b}, {mask}",
            // The owner's own writing: ordered by coherence. Does not touch the flags.
            "ldr {item}, [{slots}, {x}, lsl #3]",
            "b.gt 9f",
            // The last item, which a thief may be taking, too. Loops until the store succeeds or top has moved. Plain
            // exclusives: the slot is the owner's own, so nothing is ordered by this swap.
            "3:",
            "ldxr {x}, [{top}]",
            "cmp {x}, {t}",
            "b.ne 7f",
            "add {x}, {x}, #1",
            may_fail!("force"),
            "stxr {w:w}, {x}, [{top}]",
            "cbnz {w:w}, 3b",
            "b 8f",
            "7:",
            "mov {item}, xzr",
            // Plain: top equals this value now, so whoever reads it finds nothing to take.
            "8:",
            "add {b}, {b}, #1",
            "str {b}, [{bottom}]",
            "9:",
        );
    }
    NonNull::new(item)
}

/// Takes the oldest item, once: anybody may call it.
#[inline(always)]
pub fn pop_top<T, const N: usize>(
    top: &AtomicU64,
    bottom: &AtomicU64,
    slots: &[AtomicPtr<T>; N],
) -> Steal<T> {
    let item: *mut T;
    let outcome: u64;
    // SAFETY: as for `push_bottom`, but this function writes `top` alone, by an exclusive store.
    unsafe {
        deque_asm!(on(top, bottom, slots), in(), out(w => _, item => item, outcome => outcome), fails(force);
            "mov {item}, xzr",
            "ldr {t}, [{top}]",
            // Pairs with the DMB in pop_bottom (2).
            "dmb ish",
            // Acquire: pairs with the STLRs of bottom (1).
            "ldar {b}, [{bottom}]",
            "sub {b}, {b}, {t}",
            "cmp {b}, #0",
            // EMPTY unless there is something to take.
            "cset {outcome:w}, gt",
            "b.le 9f",
            "and {b}, {t}, {mask}",
            "ldr {item}, [{slots}, {b}, lsl #3]",
            "ldxr {b}, [{top}]",
            "cmp {b}, {t}",
            "b.ne 8f",
            "add {b}, {b}, #1",
            may_fail!("force"),
            // Release: the slot was read before this; pairs with LDAR of top in push_bottom (3).
            "stlxr {w:w}, {b}, [{top}]",
            // One attempt: a store that fails for no reason is a lost race.
            "cbz {w:w}, 9f",
            "8:",
            "mov {item}, xzr",
            "9:",
        );
    }
    match NonNull::new(item) {
        Some(item) => Steal::Taken(item),
        None if outcome == EMPTY => Steal::Empty,
        None => {
            debug_assert_eq!(outcome, TAKEN);
            Steal::Lost
        }
    }
}

/// Takes the oldest item for the owner, against thieves but without their barrier: the owner knows `bottom`
/// exactly, so the swap of `top` alone decides. Tries until it has an item or the deque is empty.
///
/// # Safety
/// As for [`push_bottom`].
#[inline(always)]
pub unsafe fn pop_oldest<T, const N: usize>(
    top: &AtomicU64,
    bottom: &AtomicU64,
    slots: &[AtomicPtr<T>; N],
) -> Option<NonNull<T>> {
    let item: *mut T;
    // SAFETY: as for `push_bottom`.
    unsafe {
        deque_asm!(on(top, bottom, slots), in(), out(x => _, w => _, item => item), fails(force);
            // Only this core writes bottom.
            "ldr {b}, [{bottom}]",
            "2:",
            "ldr {t}, [{top}]",
            "sub {x}, {b}, {t}",
            "cmp {x}, #0",
            "b.le 8f",
            "and {x}, {t}, {mask}",
            // The owner's own writing: ordered by coherence, also against its own later reuse.
            "ldr {item}, [{slots}, {x}, lsl #3]",
            "3:",
            "ldxr {x}, [{top}]",
            "cmp {x}, {t}",
            // A thief was faster: top has grown, look again.
            "b.ne 2b",
            "add {x}, {x}, #1",
            may_fail!("force"),
            // Plain: it publishes nothing, and LDXR/STXR carries on what the thieves' STLXR released.
            "stxr {w:w}, {x}, [{top}]",
            "cbnz {w:w}, 3b",
            "b 9f",
            "8:",
            "mov {item}, xzr",
            "9:",
        );
    }
    NonNull::new(item)
}

/// Takes the oldest item and puts another at the bottom; of an empty deque that very item, which does not come there then. A full one has room,
/// because an item is taken before.
///
/// # Safety
/// As for [`push_bottom`].
#[inline(always)]
pub unsafe fn rotate<T, const N: usize>(
    top: &AtomicU64,
    bottom: &AtomicU64,
    slots: &[AtomicPtr<T>; N],
    item: NonNull<T>,
) -> NonNull<T> {
    const { assert!(N > 1, "a mask of no bits cannot be part of an instruction") };
    let oldest: *mut T;
    // SAFETY: as for `push_bottom`.
    unsafe {
        exclusive_asm!(fails(force);
            // Only this core writes bottom.
            "ldr {b}, [{bottom}]",
            "3:",
            // Acquire: pairs with STLXR in pop_top (3), for the store to a slot below.
            "ldaxr {t}, [{top}]",
            // They are the same or top is behind, because the owner alone lowers bottom, and not here.
            "cmp {b}, {t}",
            "b.eq 8f",
            "add {x}, {t}, #1",
            may_fail!("force"),
            "stxr {w:w}, {x}, [{top}]",
            "cbnz {w:w}, 3b",
            // The owner's own writing: ordered by coherence, and there although top has moved.
            "and {x}, {t}, {mask}",
            "ldr {oldest}, [{slots}, {x}, lsl #3]",
            "and {x}, {b}, {mask}",
            "str {item}, [{slots}, {x}, lsl #3]",
            "add {b}, {b}, #1",
            // Release: pairs with LDAR of bottom in pop_top (1).
            "stlr {b}, [{bottom}]",
            "9:",
            // Behind the function, because it is rare.
            ".subsection 1",
            "8:",
            "mov {oldest}, {item}",
            "b 9b",
            ".subsection 0",
            top = in(reg) top.as_ptr(),
            bottom = in(reg) bottom.as_ptr(),
            slots = in(reg) slots.as_ptr(),
            item = in(reg) item.as_ptr(),
            mask = const N - 1,
            b = out(reg) _,
            t = out(reg) _,
            x = out(reg) _,
            w = out(reg) _,
            oldest = out(reg) oldest,
            options(nostack),
        );
    }
    debug_assert!(!oldest.is_null(), "a slot below `bottom` is never null");
    // SAFETY: a slot below `bottom` is never null: only `push_bottom` and this write slots.
    unsafe { NonNull::new_unchecked(oldest) }
}
