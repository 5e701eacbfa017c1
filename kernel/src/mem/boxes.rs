//! Boxes that say when there is no memory, which stable Rust's `Box` cannot.

use alloc::alloc::{Layout, alloc};
use alloc::boxed::Box;
use core::fmt;
use core::mem::MaybeUninit;
use core::ptr::NonNull;

/// The heap has no room for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OutOfMemory;

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("out of memory: give the machine more, or start less")
    }
}

impl core::error::Error for OutOfMemory {}

/// Boxes what `make` makes, which has memory by then. For what is too large to be moved about on a stack.
///
/// # Errors
/// When memory is used up; `make` was not called.
pub fn try_box_with<T>(make: impl FnOnce() -> T) -> Result<Box<T>, OutOfMemory> {
    let mut place = try_box(MaybeUninit::<T>::uninit()).map_err(|(error, _)| error)?;
    place.write(make());
    // SAFETY: written by the line above.
    Ok(unsafe { place.assume_init() })
}

/// Boxes a value, or gives it back.
pub fn try_box<T>(value: T) -> Result<Box<T>, (OutOfMemory, T)> {
    let layout = Layout::new::<T>();
    let place = if layout.size() == 0 {
        NonNull::dangling()
    } else {
        // SAFETY: the size is not zero.
        match NonNull::new(unsafe { alloc(layout) }) {
            Some(place) => place.cast::<T>(),
            None => return Err((OutOfMemory, value)),
        }
    };
    // SAFETY: fresh memory of the type's layout from the global allocator, which is what `Box` frees.
    unsafe {
        place.write(value);
        Ok(Box::from_raw(place.as_ptr()))
    }
}
