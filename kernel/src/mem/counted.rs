//! Counted references whose making may fail, which the library's `Arc` cannot say on stable Rust.
//!
//! The last one drops what it leads to.

use alloc::boxed::Box;
use core::fmt;
use core::mem::{ManuallyDrop, offset_of};
use core::ops::Deref;
use core::ptr::NonNull;

use super::boxes::{OutOfMemory, try_box};
use crate::sync::ReferenceCount;

/// What the references lead to, with how many there are.
#[repr(C)]
pub(crate) struct Place<T: ?Sized> {
    references: ReferenceCount,
    value: T,
}

/// One of several references to a value that is dropped with the last: as the library's `Arc`, but to make the first may fail, where that ends the
/// process.
///
/// ```
/// use magpie::mem::Counted;
///
/// let first = Counted::new([1, 2, 3]).map_err(|(error, _)| error)?;
/// let second = first.clone();
/// assert_eq!((second[2], second.is_only()), (3, false));
/// drop(first);
/// assert!(second.is_only());
/// # Ok::<(), magpie::mem::OutOfMemory>(())
/// ```
pub struct Counted<T: ?Sized>(NonNull<Place<T>>);

// SAFETY: owners on several cores read the value, and the last one drops it.
unsafe impl<T: ?Sized + Send + Sync> Send for Counted<T> {}
// SAFETY: as above.
unsafe impl<T: ?Sized + Send + Sync> Sync for Counted<T> {}

impl<T> Counted<T> {
    /// The first reference, to a value in memory of its own, which the caller pays for.
    ///
    /// # Errors
    /// The value comes back when there is no memory.
    pub fn new(value: T) -> Result<Self, (OutOfMemory, T)> {
        match try_box(Place { references: ReferenceCount::new(1), value }) {
            Ok(place) => Ok(Self(NonNull::from(Box::leak(place)))),
            Err((error, place)) => Err((error, place.value)),
        }
    }

    /// Where the value lies; for all of it, because it is not made from a reference.
    #[inline(always)]
    pub(crate) fn pointer(&self) -> NonNull<T> {
        // SAFETY: alive as long as a reference exists.
        unsafe { NonNull::new_unchecked(&raw mut (*self.0.as_ptr()).value) }
    }

    /// One more reference to what lies there.
    ///
    /// # Safety
    /// It came from [`Self::pointer`], and somebody keeps it meanwhile.
    pub(crate) unsafe fn of(value: NonNull<T>) -> Self {
        // SAFETY: by contract it lies in such a place.
        let place = unsafe { value.byte_sub(offset_of!(Place<T>, value)).cast::<Place<T>>() };
        // Of which the caller gives up none.
        ManuallyDrop::new(Self(place)).deref_place().references.add();
        Self(place)
    }

    /// The same reference, to the value as another type.
    ///
    /// # Safety
    /// `unsize` returns what it is given.
    pub(crate) unsafe fn unsized_by<U: ?Sized>(
        self,
        unsize: impl FnOnce(*mut Place<T>) -> *mut Place<U>,
    ) -> Counted<U> {
        let place = unsize(ManuallyDrop::new(self).0.as_ptr());
        // SAFETY: by contract it is the same, which is not null.
        Counted(unsafe { NonNull::new_unchecked(place) })
    }
}

impl<T: ?Sized> Counted<T> {
    /// Whether it is the only reference: what others have done with the value before they dropped theirs is seen then.
    pub fn is_only(&self) -> bool {
        self.deref_place().references.is_one()
    }

    #[inline(always)]
    fn deref_place(&self) -> &Place<T> {
        // SAFETY: alive as long as a reference exists.
        unsafe { self.0.as_ref() }
    }
}

impl<T: ?Sized + fmt::Debug> fmt::Debug for Counted<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (**self).fmt(f)
    }
}

impl<T: ?Sized> Deref for Counted<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.deref_place().value
    }
}

impl<T: ?Sized> Clone for Counted<T> {
    #[inline(always)]
    fn clone(&self) -> Self {
        self.deref_place().references.add();
        Self(self.0)
    }
}

impl<T: ?Sized> Drop for Counted<T> {
    #[inline(always)]
    fn drop(&mut self) {
        if self.deref_place().references.release() {
            // SAFETY: it was the last.
            unsafe { free(self.0) };
        }
    }
}

/// Not a part of each drop, of which most only count.
///
/// # Safety
/// The last reference is gone.
#[cold]
#[inline(never)]
unsafe fn free<T: ?Sized>(place: NonNull<Place<T>>) {
    // SAFETY: by contract; the memory came from a box.
    drop(unsafe { Box::from_raw(place.as_ptr()) });
}

#[cfg(all(test, not(any(loom, shuttle))))]
mod tests {
    use super::Counted;
    use core::cell::Cell;

    struct Tells<'a>(&'a Cell<u32>);

    impl Drop for Tells<'_> {
        fn drop(&mut self) {
            self.0.set(self.0.get() + 1);
        }
    }

    trait Drops {
        fn dropped(&self) -> u32;
    }

    /// Aligned, so that it lies far behind the count.
    #[repr(align(128))]
    struct Aligned<'a>(Tells<'a>);

    impl Drops for Aligned<'_> {
        fn dropped(&self) -> u32 {
            self.0.0.get()
        }
    }

    #[test]
    fn the_last_reference_drops_it() {
        let dropped = Cell::new(0);
        let first = Counted::new(Aligned(Tells(&dropped))).map_err(|(error, _)| error).expect("memory");
        // SAFETY: `first` keeps it.
        let (second, third) = (first.clone(), unsafe { Counted::of(first.pointer()) });
        assert!(core::ptr::eq(&*second, &*third) && (&raw const *third).is_aligned());
        // SAFETY: it is returned as it is.
        let second: Counted<dyn Drops + '_> = unsafe { second.unsized_by::<dyn Drops + '_>(|place| place) };
        drop((first, third));
        assert_eq!(second.dropped(), 0);
        drop(second);
        assert_eq!(dropped.get(), 1);
    }
}
