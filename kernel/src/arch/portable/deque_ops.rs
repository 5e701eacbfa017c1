//! The operations of the work-stealing deque, over the language's atomics.
//!
//! The algorithm is Chase and Lev's (SPAA 2005) with a ring of fixed size, in the C11 form of Lê, Pop,
//! Cohen and Zappa Nardelli (PPoPP 2013), orderings derived anew below. `top` and `bottom` count items
//! ever stolen and ever pushed: they only grow (except for the owner's temporary decrement), are compared by
//! their wrapping difference, and are masked on access, so a slot cannot be mistaken for its reuse and an
//! empty deque at 0 cannot underflow. Item `i` lies in slot `i % N` while `top <= i < bottom`.
//!
//! One thread owns the deque and alone writes `bottom` and the slots; `top` moves by compare-and-swap.
//! What must be ordered, and by which pair:
//!
//! 1. *Item before index*: whoever sees `bottom > i` sees slot `i` and what it points to. Every store to
//!    `bottom` that a thief can act upon is a release; the thief's load of `bottom` is an acquire.
//! 2. *Decrement before look*: `pop_bottom` lowers `bottom`, then reads `top`; a thief reads `top`, then
//!    `bottom`. If both miss the other, one item is taken twice. A store before a load is ordered by a full
//!    fence alone, on both sides: the two `fence(SeqCst)`.
//! 3. *Read before reuse*: the thief reads its slot before its swap of `top` is seen, because the owner may overwrite
//!    the slot once it sees the advanced `top`. The swap is a release; `put` loads `top` with acquire, and `rotate` moves it so. A later
//!    swap by somebody else continues the release sequence.
//!
//! `arch/aarch64/deque_ops.rs` has the same functions as LDXR/STXR assembly.

use core::ptr::NonNull;

use super::exclusive::{decided_u64, once_u64};
use crate::arch::atomic::{AtomicPtr, AtomicU64, Ordering, fence};
use crate::arch::{Full, Steal};

/// Items between the indices; negative while the owner has lowered `bottom` below `top`.
#[inline(always)]
fn count(top: u64, bottom: u64) -> i64 {
    bottom.wrapping_sub(top).cast_signed()
}

#[inline(always)]
fn slot<T, const N: usize>(slots: &[AtomicPtr<T>; N], index: u64) -> &AtomicPtr<T> {
    // The mask keeps the low bits, which is what truncation keeps.
    &slots[index as usize & (N - 1)]
}

/// Puts an item at the bottom. The value of `top` that left room for it.
///
/// # Errors
/// As [`push_bottom`].
///
/// # Safety
/// As for [`push_bottom`].
#[inline(always)]
unsafe fn put<T, const N: usize>(
    top: &AtomicU64,
    bottom: &AtomicU64,
    slots: &[AtomicPtr<T>; N],
    item: NonNull<T>,
) -> Result<u64, Full> {
    // Relaxed: only this thread writes `bottom`.
    let b = bottom.load(Ordering::Relaxed);
    // Acquire: pairs with the release swap in `pop_top` (3): the thief is done with the slot. A stale value only makes
    // the deque look fuller than it is.
    let t = top.load(Ordering::Acquire);
    if count(t, b) >= N as i64 {
        return Err(Full);
    }
    // Relaxed: published by the next store.
    slot(slots, b).store(item.as_ptr(), Ordering::Relaxed);
    // Release: pairs with the acquire load of `bottom` in `pop_top` (1).
    bottom.store(b.wrapping_add(1), Ordering::Release);
    Ok(t)
}

/// Puts an item at the bottom.
///
/// # Errors
/// [`Full`]; then the item stays the caller's.
///
/// # Safety
/// The caller is the deque's owner: no other thread is inside `push_bottom`, `pop_bottom` or `pop_oldest`.
/// `N` is a power of two.
#[inline(always)]
pub unsafe fn push_bottom<T, const N: usize>(
    top: &AtomicU64,
    bottom: &AtomicU64,
    slots: &[AtomicPtr<T>; N],
    item: NonNull<T>,
) -> Result<(), Full> {
    // SAFETY: by contract.
    unsafe { put(top, bottom, slots, item) }.map(|_| ())
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
    // Relaxed: only this thread writes `bottom`.
    let old = bottom.load(Ordering::Relaxed);
    // Relaxed: `top` only grows, so if even a stale value leaves nothing, there is nothing. Saves the stores and the
    // fence on an empty deque.
    if count(top.load(Ordering::Relaxed), old) <= 0 {
        return None;
    }
    let b = old.wrapping_sub(1);
    // Release: a thief may read this very store, and must then still see the items below it (1): a plain
    // store would end what the release in `put` began.
    bottom.store(b, Ordering::Release);
    // Pairs with the fence in `pop_top` (2).
    fence(Ordering::SeqCst);
    // Relaxed: the fence orders.
    let t = top.load(Ordering::Relaxed);
    let left = count(t, b);
    if left > 0 {
        // Thieves that have not seen the lowered `bottom` are no further than `t < b`: the item is ours.
        // Relaxed: only this thread writes slots.
        return NonNull::new(slot(slots, b).load(Ordering::Relaxed));
    }
    // At most the last item is left, and a thief may be taking it, too: whoever moves `top` has it. Relaxed: the slot
    // is this thread's own writing, so nothing needs to be ordered before or after the swap.
    let won = left == 0 && decided_u64(top, b, b.wrapping_add(1), Ordering::Relaxed);
    // Relaxed: `top` equals this value now, so a thief that reads it finds nothing; one that read the
    // older `top` fails its swap, and does not use what it read from the slot.
    bottom.store(old, Ordering::Relaxed);
    if won { NonNull::new(slot(slots, b).load(Ordering::Relaxed)) } else { None }
}

/// Takes the oldest item, once: anybody may call it.
#[inline(always)]
pub fn pop_top<T, const N: usize>(
    top: &AtomicU64,
    bottom: &AtomicU64,
    slots: &[AtomicPtr<T>; N],
) -> Steal<T> {
    // Relaxed: the fence orders it before the load of `bottom`; the swap below checks it.
    let t = top.load(Ordering::Relaxed);
    // Pairs with the fence in `pop_bottom` (2). It also lets a thief that reads a `top` which the owner's
    // relaxed swap wrote see every lowering of `bottom` before that swap.
    fence(Ordering::SeqCst);
    // Acquire: pairs with the release stores of `bottom` (1).
    let b = bottom.load(Ordering::Acquire);
    if count(t, b) <= 0 {
        return Steal::Empty;
    }
    // Relaxed: ordered after `bottom` by its acquire, before the swap by its release.
    let item = slot(slots, t).load(Ordering::Relaxed);
    // Release: pairs with the acquire load of `top` in `put` (3).
    if !once_u64(top, t, t.wrapping_add(1), Ordering::Release) {
        return Steal::Lost;
    }
    // A slot below `bottom` is never null: only `put` writes slots.
    NonNull::new(item).map_or(Steal::Lost, Steal::Taken)
}

/// Takes the oldest item for the owner, against thieves but without their fence: the owner knows `bottom`
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
    // Relaxed: only this thread writes `bottom`.
    let b = bottom.load(Ordering::Relaxed);
    loop {
        // Relaxed: the swap checks it. Each turn of the loop means that a thief has taken an item.
        let t = top.load(Ordering::Relaxed);
        if count(t, b) <= 0 {
            return None;
        }
        // Relaxed: only this thread writes slots, so the read needs no ordering against their reuse.
        let item = slot(slots, t).load(Ordering::Relaxed);
        // Relaxed: nothing is published by it; as a read-modify-write it continues the release sequence
        // of the thieves' swaps (3).
        if decided_u64(top, t, t.wrapping_add(1), Ordering::Relaxed) {
            return NonNull::new(item);
        }
    }
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
    // Relaxed: only this thread writes `bottom`.
    let b = bottom.load(Ordering::Relaxed);
    let t = loop {
        // Relaxed: the swap checks it. Each turn of the loop means that a thief has taken an item.
        let t = top.load(Ordering::Relaxed);
        if count(t, b) <= 0 {
            return item;
        }
        // Acquire: pairs with the swap in `pop_top` (3): the slot at `bottom` may be one that a thief has read.
        if decided_u64(top, t, t.wrapping_add(1), Ordering::Acquire) {
            break t;
        }
    };
    // Relaxed: only this thread writes slots, so the item is there although `top` has moved.
    let oldest = slot(slots, t).load(Ordering::Relaxed);
    debug_assert!(!oldest.is_null(), "a slot below `bottom` is never null");
    slot(slots, b).store(item.as_ptr(), Ordering::Relaxed);
    // Release: pairs with the acquire of `bottom` in `pop_top` (1).
    bottom.store(b.wrapping_add(1), Ordering::Release);
    // SAFETY: a slot below `bottom` is never null: only `put` and this write slots.
    unsafe { NonNull::new_unchecked(oldest) }
}
