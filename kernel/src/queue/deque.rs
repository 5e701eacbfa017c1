//! The work-stealing deque: one owner, many thieves, a ring of fixed size.
//!
//! The owner pushes at the bottom, and takes the newest there or the oldest at the top; thieves take the
//! oldest. A full deque says so and changes nothing. The algorithm and its orderings are in
//! `arch/portable/deque_ops.rs` and `arch/aarch64/deque_ops.rs`; this file holds the memory they work on,
//! the batch, and the checks.

use core::fmt;
use core::ptr::NonNull;

use crate::arch::atomic::{AtomicPtr, AtomicU64, Ordering, const_fn, null_pointers};
use crate::arch::{Full, Steal, deque_ops};
use crate::in_place::write_fields;

/// An index on a cache line of its own (64 bytes on every core the kernel runs on): thieves write `top`,
/// the owner writes `bottom`, and neither slows the other down.
#[repr(align(64))]
struct Index(AtomicU64);

/// A deque of at most `N` pointers; `N` is a power of two.
///
/// Invariants, between the owner's operations:
/// - `bottom` is written by the owner alone, `top` is only ever increased, by a compare-and-swap;
/// - `0 <= bottom - top <= N`, modulo 2^64;
/// - the slots of `top..bottom` hold the items, oldest first, none of them null.
// In this order, so that the three are near one another: their addresses are made from one.
#[repr(C)]
pub struct Deque<T, const N: usize> {
    top: Index,
    bottom: Index,
    slots: [AtomicPtr<T>; N],
}

/// What a batch of steals came to.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Stolen {
    /// Items taken.
    pub taken: usize,
    /// Attempts lost to another taker; the batch ends at the second.
    pub lost: usize,
}

/// The deque's memory is not what its operations leave behind: it was overwritten, or two owners were at work at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Corrupted {
    /// Items ever taken at the top.
    pub top: u64,
    /// Items ever pushed, less those taken at the bottom.
    pub bottom: u64,
    /// The index of a null item between the two, or `None` if the indices themselves are impossible.
    pub null_at: Option<u64>,
}

impl fmt::Display for Corrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { top, bottom, null_at } = self;
        match null_at {
            Some(index) => write!(f, "deque corrupted: item {index} of {top}..{bottom} is null"),
            None => write!(f, "deque corrupted: top {top} and bottom {bottom} cannot be"),
        }
    }
}

impl core::error::Error for Corrupted {}

impl<T, const N: usize> Deque<T, N> {
    const CAPACITY_IS_A_POWER_OF_TWO: () =
        assert!(N.is_power_of_two(), "the capacity must be a power of two");

    const_fn! {
        /// An empty deque.
        pub fn new() -> Self {
            Self::starting_at(0)
        }
    }

    const_fn! {
        /// An empty deque whose indices start at `start`: tests start near 2^64, where they wrap.
        pub fn starting_at(start: u64) -> Self {
            let () = Self::CAPACITY_IS_A_POWER_OF_TWO;
            Self { top: Index(AtomicU64::new(start)), bottom: Index(AtomicU64::new(start)), slots: null_pointers() }
        }
    }

    /// Makes an empty deque at a place, for one that is too large to be moved on a stack.
    ///
    /// # Safety
    /// The place is fit to be written.
    pub unsafe fn init(place: *mut Self) {
        let () = Self::CAPACITY_IS_A_POWER_OF_TWO;
        let empty = |slots: *mut [AtomicPtr<T>; N]| {
            for slot in 0..N {
                // SAFETY: the caller promised a place fit to be written; this is within the array.
                unsafe {
                    slots.cast::<AtomicPtr<T>>().add(slot).write(AtomicPtr::new(core::ptr::null_mut()))
                };
            }
        };
        // SAFETY: the caller promised a place fit to be written.
        unsafe {
            write_fields!(place => Self { top: Index(AtomicU64::new(0)), bottom: Index(AtomicU64::new(0)), }
                in place { slots: empty, });
        }
    }

    /// How many items fit.
    pub const fn capacity(&self) -> usize {
        N
    }

    /// Puts an item at the bottom.
    ///
    /// # Errors
    /// [`Full`]; then the item stays the caller's.
    ///
    /// # Safety
    /// The caller is the owner: no other call of `push_bottom`, `pop_bottom`, `pop_oldest` or `rotate` of this deque
    /// overlaps this one, and the one before happened before it. The item may be handed to any core.
    #[inline(always)]
    pub unsafe fn push_bottom(&self, item: NonNull<T>) -> Result<(), Full> {
        // SAFETY: the caller is the owner; the capacity was checked at compile time.
        unsafe { deque_ops::push_bottom(&self.top.0, &self.bottom.0, &self.slots, item) }
    }

    /// Takes the newest item.
    ///
    /// # Safety
    /// The caller is the owner, as for [`push_bottom`](Self::push_bottom).
    #[inline(always)]
    pub unsafe fn pop_bottom(&self) -> Option<NonNull<T>> {
        // SAFETY: as above.
        unsafe { deque_ops::pop_bottom(&self.top.0, &self.bottom.0, &self.slots) }
    }

    /// Takes the oldest item, for the owner: no barrier, and no failure while there is an item.
    ///
    /// # Safety
    /// The caller is the owner, as for [`push_bottom`](Self::push_bottom).
    #[inline(always)]
    pub unsafe fn pop_oldest(&self) -> Option<NonNull<T>> {
        // SAFETY: as above.
        unsafe { deque_ops::pop_oldest(&self.top.0, &self.bottom.0, &self.slots) }
    }

    /// Takes the oldest item and puts another at the bottom, for the owner: the next of those that take turns. If none waits it is that
    /// very item, which does not come here then. A full deque has room.
    ///
    /// # Safety
    /// The caller is the owner, and the item is as for [`push_bottom`](Self::push_bottom).
    #[inline(always)]
    pub unsafe fn rotate(&self, item: NonNull<T>) -> NonNull<T> {
        // SAFETY: as above.
        unsafe { deque_ops::rotate(&self.top.0, &self.bottom.0, &self.slots, item) }
    }

    /// Takes the oldest item, in one attempt. Anybody may call it.
    #[inline(always)]
    pub fn pop_top(&self) -> Steal<T> {
        deque_ops::pop_top(&self.top.0, &self.bottom.0, &self.slots)
    }

    /// Takes half of the items, rounded up, at most `cap`, oldest first, and hands each to `receive`.
    ///
    /// Each is taken by its own exchange of `top`, with a fresh look at `bottom`. One exchange for the
    /// whole batch would be wrong: the owner takes from the bottom without an exchange as long as it sees
    /// more than one item, so between the thief's look at `bottom` and its exchange the owner may have
    /// taken items out of the middle of the batch, with `top` unchanged.
    pub fn steal_half(&self, cap: usize, mut receive: impl FnMut(NonNull<T>)) -> Stolen {
        let wanted = self.len().div_ceil(2).min(cap);
        let mut batch = Stolen::default();
        while batch.taken < wanted {
            match self.pop_top() {
                Steal::Taken(item) => {
                    batch.taken += 1;
                    receive(item);
                }
                Steal::Empty => break,
                Steal::Lost => {
                    batch.lost += 1;
                    // Once may be chance; twice means that other takers are active, and half is no longer half.
                    if batch.lost == 2 {
                        break;
                    }
                }
            }
        }
        batch
    }

    /// Overwrites the slots that hold no item: what was taken may be freed and its memory used again, and would seem
    /// to be pointed to from here.
    ///
    /// # Safety
    /// No other operation overlaps this one, and those before it happened before it.
    pub unsafe fn clear_taken(&self) {
        // Relaxed: by contract nothing is concurrent.
        let top = self.top.0.load(Ordering::Relaxed);
        let count = self.len() as u64;
        for offset in count..N as u64 {
            let index = top.wrapping_add(offset) as usize & (N - 1);
            self.slots[index].store(core::ptr::null_mut(), Ordering::Relaxed);
        }
    }

    /// How many items there are; may be outdated before the caller sees it.
    #[inline(always)]
    pub fn len(&self) -> usize {
        // Relaxed: an estimate. The clamp covers two reads at different times, and the owner's temporary decrement
        // below `top`.
        let bottom = self.bottom.0.load(Ordering::Relaxed);
        let top = self.top.0.load(Ordering::Relaxed);
        bottom.wrapping_sub(top).cast_signed().clamp(0, N as i64) as usize
    }

    /// Whether there are no items; may be outdated before the caller sees it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Checks the invariants that memory can show. Exact when the owner calls it, whatever thieves do
    /// meanwhile; from elsewhere only while the deque is at rest.
    ///
    /// # Errors
    /// What does not hold.
    pub fn check(&self) -> Result<(), Corrupted> {
        // Relaxed: the owner reads its own `bottom` and slots; a stale `top` is still one that the invariants allow.
        let bottom = self.bottom.0.load(Ordering::Relaxed);
        let top = self.top.0.load(Ordering::Relaxed);
        let count = bottom.wrapping_sub(top);
        if count > N as u64 {
            return Err(Corrupted { top, bottom, null_at: None });
        }
        for offset in 0..count {
            let index = top.wrapping_add(offset);
            if self.slots[index as usize & (N - 1)].load(Ordering::Relaxed).is_null() {
                return Err(Corrupted { top, bottom, null_at: Some(index) });
            }
        }
        Ok(())
    }
}

impl<T, const N: usize> Default for Deque<T, N> {
    fn default() -> Self {
        Self::new()
    }
}

// What holds on several cores is in `tests/checks/deque.rs`.
#[cfg(all(test, not(loom)))]
mod tests {
    use super::Deque;
    use alloc::vec::Vec;
    use core::ptr::NonNull;
    use core::sync::atomic::Ordering;

    /// After `clear_taken` the slots have the items that wait, which come as before, and no other.
    #[test]
    fn what_was_taken_is_overwritten() {
        for (start, waiting) in
            [0, u64::MAX - 5].into_iter().flat_map(|start| (0..=4).map(move |n| (start, n)))
        {
            let items: Vec<u32> = (0..9).collect();
            let deque = Deque::<u32, 4>::starting_at(start);
            // SAFETY: this thread is the owner and the only one; nobody follows the pointers.
            unsafe {
                for item in &items[..5] {
                    assert!(deque.push_bottom(item.into()).is_ok());
                    assert_eq!(deque.pop_oldest(), Some(item.into()));
                }
                for item in &items[5..5 + waiting] {
                    assert!(deque.push_bottom(item.into()).is_ok());
                }
                deque.clear_taken();
            }
            let held = deque.slots.iter().filter(|slot| !slot.load(Ordering::Relaxed).is_null()).count();
            assert_eq!(held, waiting);
            for item in &items[5..5 + waiting] {
                // SAFETY: as above.
                assert_eq!(unsafe { deque.pop_oldest() }, Some(NonNull::from(item)));
            }
            assert_eq!(deque.check(), Ok(()));
        }
    }
}
