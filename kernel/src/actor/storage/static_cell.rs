//! Cells in storage of the application's own, and the list of those that were ever used.
//!
//! Such a cell is in no chunk: its kind stands before it. What may be done with it is for those to say who hand it out.

use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, align_of};
use core::ptr::{self, NonNull};

use super::cell::{self, Cell, CellHeader, Kind};
use crate::arch::atomic::{AtomicPtr, Ordering};

/// What static cells of all types have in common.
#[repr(C)]
struct Link {
    next: AtomicPtr<Link>,
    /// Points to itself until it is on the list.
    listed: AtomicPtr<Link>,
}

/// A static cell for an actor of type `A`.
#[repr(C)]
pub(crate) struct StaticCell<A: 'static> {
    link: Link,
    /// Directly before the cell: see [`cell::kind`].
    kind: &'static Kind,
    /// Written through shared references, by who has claimed its word.
    cell: Cell<UnsafeCell<MaybeUninit<A>>>,
}

// SAFETY: the word of the cell says who may use the state; states can change cores.
unsafe impl<A: Send> Sync for StaticCell<A> {}

/// Every static cell that was ever used.
static STARTED: AtomicPtr<Link> = AtomicPtr::new(ptr::null_mut());

/// Where the cell lies, behind the link and the kind.
const CELL_OFFSET: usize = size_of::<Link>() + size_of::<&Kind>();

impl<A: cell::Stored> StaticCell<A> {
    const FITS: () = assert!(
        align_of::<A>() <= 8 && !cell::is_boxed::<A>(),
        "a static actor's state may have 1000 bytes, aligned to 8: box what is larger"
    );

    /// Without an actor, as if so many had ended here.
    pub(crate) const fn new(generation: u32) -> Self {
        let () = Self::FITS;
        let link = Link { next: AtomicPtr::new(ptr::null_mut()), listed: AtomicPtr::new(ptr::null_mut()) };
        Self { link, kind: cell::kind_of::<A>(), cell: Cell::free_static(generation) }
    }

    /// The cell.
    pub(crate) fn cell(&'static self) -> NonNull<CellHeader> {
        // With the provenance of the whole: the kind is found before the cell.
        // SAFETY: the offset is that of the field.
        unsafe { NonNull::from(self).cast::<u8>().add(CELL_OFFSET).cast() }
    }

    /// Puts it on the list of those that an executor looks through when it stops.
    ///
    /// # Safety
    /// The caller has claimed the cell.
    pub(crate) unsafe fn list(&'static self) {
        let link = ptr::from_ref(self).cast::<Link>().cast_mut();
        // Relaxed: the caller has claimed the cell, so it is alone; what it does here is published below.
        if !self.link.listed.load(Ordering::Relaxed).is_null() {
            return;
        }
        self.link.listed.store(link, Ordering::Relaxed);
        let mut first = STARTED.load(Ordering::Relaxed);
        loop {
            self.link.next.store(first, Ordering::Relaxed);
            // Release: pairs with the acquire in `all`. Nothing is ever removed, so there is no ABA.
            match STARTED.compare_exchange(first, link, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }
}

/// All static cells that were ever used.
pub(crate) fn all() -> impl Iterator<Item = NonNull<CellHeader>> {
    // Acquire: pairs with the release in `list`.
    let mut next = STARTED.load(Ordering::Acquire);
    core::iter::from_fn(move || {
        let link = NonNull::new(next)?;
        // SAFETY: what is listed is static; the cell lies at that offset.
        unsafe {
            next = link.as_ref().next.load(Ordering::Relaxed);
            Some(link.cast::<u8>().add(CELL_OFFSET).cast())
        }
    })
}

const _: () = assert!(core::mem::offset_of!(StaticCell<u64>, cell) == CELL_OFFSET);
