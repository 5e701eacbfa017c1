//! Boxes that say when there is no memory, which stable Rust's `Box` cannot.

use alloc::alloc::{Layout, alloc};
use alloc::boxed::Box;
use core::fmt;
use core::ptr::NonNull;

use super::limit::Payer;
use crate::sync::PaidBy;

/// The heap has no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory: give the machine more, or start less")
    }
}

impl core::error::Error for OutOfMemory {}

/// Boxes what `make` makes, after its memory was allocated. Nobody pays for it.
///
/// # Errors
/// When memory is used up; `make` was not called.
pub(crate) fn kernel_box_with<T>(make: impl FnOnce() -> T) -> Result<Box<T>, OutOfMemory> {
    // SAFETY: it is written whole.
    unsafe { kernel_box_in_place(|place: *mut T| place.write(make())) }
}

/// Boxes what `init` makes in its final place. For values that are too large to be moved on a stack.
///
/// # Errors
/// When memory is used up; `init` was not called.
///
/// # Safety
/// `init` makes a valid value at the place that it is handed, which is fit to be written.
pub unsafe fn try_box_in_place<T>(init: impl FnOnce(*mut T)) -> Result<Box<T>, OutOfMemory> {
    let place = place_for::<T>().ok_or(OutOfMemory)?;
    init(place.as_ptr());
    // SAFETY: memory of the type's layout from the global allocator, which is what `Box` frees; `init` made a valid
    // value there, as the caller promised.
    Ok(unsafe { Box::from_raw(place.as_ptr()) })
}

/// The same, and nobody pays for it.
///
/// # Errors
/// As for [`try_box_in_place`].
///
/// # Safety
/// As for [`try_box_in_place`].
pub(crate) unsafe fn kernel_box_in_place<T>(init: impl FnOnce(*mut T)) -> Result<Box<T>, OutOfMemory> {
    let place = kernel_place_for::<T>().ok_or(OutOfMemory)?;
    init(place.as_ptr());
    // SAFETY: as in `try_box_in_place`.
    Ok(unsafe { Box::from_raw(place.as_ptr()) })
}

/// Boxes a value, or gives it back: the library's `Box::new` ends the process when memory is used up.
///
/// # Errors
/// The value comes back when there is no memory.
///
/// ```
/// let boxed = magpie::mem::try_box([0_u8; 100]).map_err(|(error, _)| error)?;
/// assert_eq!(boxed.len(), 100);
/// # Ok::<(), magpie::mem::OutOfMemory>(())
/// ```
pub fn try_box<T>(value: T) -> Result<Box<T>, (OutOfMemory, T)> {
    fill(place_for(), value)
}

/// Boxes what serves others than the caller, too, so that nobody pays for it; or gives it back.
///
/// # Errors
/// As for [`try_box`].
pub(crate) fn kernel_box<T>(value: T) -> Result<Box<T>, (OutOfMemory, T)> {
    fill(kernel_place_for(), value)
}

/// Boxes what `payer` pays for, or else whoever pays for the caller; or gives it back: also if that can pay no more.
///
/// # Errors
/// As for [`try_box`].
#[inline(always)]
pub(crate) fn try_box_paid_by<T>(payer: Option<Payer>, value: T) -> Result<Box<T>, (OutOfMemory, T)> {
    let place = match payer {
        None => place_for(),
        Some(payer) => place_paid_by(payer, Layout::new::<T>()).map(NonNull::cast),
    };
    fill(place, value)
}

/// Memory that `payer` pays for.
#[cold]
fn place_paid_by(payer: Payer, layout: Layout) -> Option<NonNull<u8>> {
    if layout.size() == 0 {
        return Some(layout.dangling_ptr());
    }
    #[cfg(target_os = "none")]
    return NonNull::new(super::heap::HEAP.alloc_paid_by(payer, layout));
    // A host's allocator knows no payers.
    #[cfg(not(target_os = "none"))]
    // SAFETY: the size is not zero.
    return NonNull::new(if payer.lives() { unsafe { alloc(layout) } } else { core::ptr::null_mut() });
}

fn fill<T>(place: Option<NonNull<T>>, value: T) -> Result<Box<T>, (OutOfMemory, T)> {
    let Some(place) = place else { return Err((OutOfMemory, value)) };
    // SAFETY: fresh memory of the type's layout from the global allocator, which is what `Box` frees.
    unsafe {
        place.write(value);
        Ok(Box::from_raw(place.as_ptr()))
    }
}

/// Uninitialised memory of that layout that nobody pays for; from the global allocator, unless it is empty.
pub(crate) fn kernel_memory(layout: Layout) -> Option<NonNull<u8>> {
    if layout.size() == 0 {
        return Some(layout.dangling_ptr());
    }
    let _nobody = PaidBy::nobody();
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { alloc(layout) })
}

/// Uninitialised memory for a `T` that nobody pays for.
fn kernel_place_for<T>() -> Option<NonNull<T>> {
    let _nobody = PaidBy::nobody();
    place_for()
}

/// Uninitialised memory for a `T`.
fn place_for<T>() -> Option<NonNull<T>> {
    let layout = Layout::new::<T>();
    if layout.size() == 0 {
        return Some(NonNull::dangling());
    }
    // SAFETY: the size is not zero.
    NonNull::new(unsafe { alloc(layout) }).map(NonNull::cast)
}
