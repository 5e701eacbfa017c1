//! Cells in storage of the application's own, and the list of those that were ever used.
//!
//! Such a cell is in no chunk: its kind stands before it. What may be done with it is for those to say who hand it out.

use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, align_of};
use core::ptr::{self, NonNull};

use super::cell::{self, Cell, CellRef, Kind};
use crate::arch::atomic::{AtomicBool, AtomicPtr, Ordering};
use crate::queue::{AppendOnly, Linked};

/// What static cells of all types have in common.
#[repr(C)]
struct Link {
    next: AtomicPtr<Link>,
    is_listed: AtomicBool,
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
static STARTED: AppendOnly<Link> = AppendOnly::new();

// SAFETY: `next` is one field for life, used by nothing but the list.
unsafe impl Linked for Link {
    unsafe fn link(&self) -> &AtomicPtr<Self> {
        &self.next
    }
}

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
        let link = Link { next: AtomicPtr::new(ptr::null_mut()), is_listed: AtomicBool::new(false) };
        Self { link, kind: cell::kind_of::<A>(), cell: Cell::free_static(generation) }
    }

    /// The cell.
    pub(crate) fn cell(&'static self) -> CellRef {
        // With the provenance of the whole: the kind is found before the cell.
        // SAFETY: the offset is that of the field.
        unsafe { CellRef::new(NonNull::from(self).cast::<u8>().add(CELL_OFFSET).cast()) }
    }

    /// Puts it on the list of those that an executor looks through when it stops.
    ///
    /// # Safety
    /// The caller has claimed the cell.
    pub(crate) unsafe fn list(&'static self) {
        // Relaxed: the caller has claimed the cell, so it is alone; the list publishes it.
        if !self.link.is_listed.swap(true, Ordering::Relaxed) {
            // With the provenance of the whole: the cell is found behind the link.
            // SAFETY: a static is valid for ever, and this is done once.
            unsafe { STARTED.push(NonNull::from(self).cast()) };
        }
    }
}

/// All static cells that were ever used.
pub(crate) fn all() -> impl Iterator<Item = CellRef> {
    // SAFETY: what is listed is a static; the cell lies at that offset.
    STARTED.iter().map(|link| unsafe { CellRef::new(link.cast::<u8>().add(CELL_OFFSET).cast()) })
}

const _: () = assert!(core::mem::offset_of!(StaticCell<u64>, cell) == CELL_OFFSET);
