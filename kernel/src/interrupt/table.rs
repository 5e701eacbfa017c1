//! Which line a number leads to: looked up in every interrupt of a device, without a lock; and all lines that were ever claimed.

use alloc::boxed::Box;
use core::ptr::{self, NonNull};

use super::Line;
use super::slot::Slot;
use crate::arch::atomic::{AtomicPtr, Ordering, null_pointers};
use crate::mem::{self, OutOfMemory};
use crate::queue::AppendOnly;

/// More numbers than any interrupt controller has that the kernel knows.
const NUMBERS: usize = 1020;

/// By number. What is stored here stays.
static SLOTS: [AtomicPtr<Slot>; NUMBERS] = null_pointers();
/// The same, to be gone through.
static ALL: AppendOnly<Slot> = AppendOnly::new();

/// The slot of a line, if it was ever claimed.
#[inline(always)]
pub(super) fn get(number: u32) -> Option<&'static Slot> {
    // Acquire: pairs with the release in `get_or_make`.
    let slot = SLOTS.get(number as usize)?.load(Ordering::Acquire);
    // SAFETY: null, or a slot that was leaked.
    unsafe { slot.as_ref() }
}

/// The slot of a line, made if it is the first time. `None` for a number that no line can have.
pub(super) fn get_or_make(line: Line) -> Result<Option<&'static Slot>, OutOfMemory> {
    let Some(place) = SLOTS.get(line.number as usize) else { return Ok(None) };
    if let Some(slot) = get(line.number) {
        return Ok(Some(slot));
    }
    let made = Box::into_raw(mem::kernel_box_with(|| Slot::new(line))?);
    // AcqRel: the release pairs with the acquire in `get`; the acquire is for another's.
    match place.compare_exchange(ptr::null_mut(), made, Ordering::AcqRel, Ordering::Acquire) {
        Ok(_) => {
            // SAFETY: leaked, so it stays; and it is in no list, because only who has stored it comes here.
            let slot: &'static Slot = unsafe { &*made };
            // SAFETY: as above; what it has may be read by any core.
            unsafe { ALL.push(NonNull::from(slot)) };
            Ok(Some(slot))
        }
        Err(_) => {
            // SAFETY: made above, and nobody else has seen it.
            drop(unsafe { Box::from_raw(made) });
            Ok(get(line.number))
        }
    }
}

/// All that were ever claimed.
pub(super) fn all() -> impl Iterator<Item = &'static Slot> {
    // SAFETY: what was pushed stays.
    ALL.iter().map(|slot| unsafe { slot.as_ref() })
}
