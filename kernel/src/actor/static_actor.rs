//! Actors whose storage belongs to the user: a `static`.
//!
//! When such an actor ends with [`Outcome::Finished`](super::Outcome) its state stays where it is, until the
//! user takes it. Ended in any other way, also by a crash, the storage is free for the next start.

use core::cell::UnsafeCell;
use core::mem::{MaybeUninit, align_of};
use core::ptr::{self, NonNull};

use super::address::Addr;
use super::behaviour::Actor;
use super::cell::{self, Cell, CellHeader, Kind};
use super::handle::ExecutorHandle;
use super::spawn::{self, SpawnError};
use super::word::Life;
use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::sync::PreemptGuard;

/// What static actors of all types have in common.
#[repr(C)]
struct Link {
    next: AtomicPtr<Link>,
    /// Points to itself until it is on the list.
    listed: AtomicPtr<Link>,
}

/// Storage for one actor, in a `static`. At most 1000 bytes, aligned to 8 at most.
#[repr(C)]
pub struct StaticActor<A: 'static> {
    link: Link,
    /// Directly before the cell: see [`cell::kind`].
    kind: &'static Kind,
    /// Written through shared references, by who has claimed its word.
    cell: Cell<UnsafeCell<MaybeUninit<A>>>,
}

// SAFETY: the word of the cell says who may use the state; states can change cores.
unsafe impl<A: Send> Sync for StaticActor<A> {}

/// Every static actor that was ever started.
static STARTED: AtomicPtr<Link> = AtomicPtr::new(ptr::null_mut());

/// Where the cell lies, behind the link and the kind.
const CELL_OFFSET: usize = size_of::<Link>() + size_of::<&Kind>();

impl<A: Actor> StaticActor<A> {
    const FITS: () = assert!(
        align_of::<A>() <= 8 && !cell::is_boxed::<A>(),
        "a static actor's state may have 1000 bytes, aligned to 8: box what is larger"
    );

    /// Storage without an actor.
    #[expect(clippy::new_without_default, reason = "it is of use in a static only, which needs a constant")]
    pub const fn new() -> Self {
        Self::at_generation(0)
    }

    /// As [`Self::new`], as if so many actors had ended here: for a test, which cannot wait for them.
    #[cfg(feature = "checks")]
    #[doc(hidden)]
    pub const fn after_generations(generations: u32) -> Self {
        Self::at_generation(generations)
    }

    const fn at_generation(generation: u32) -> Self {
        let () = Self::FITS;
        let link = Link { next: AtomicPtr::new(ptr::null_mut()), listed: AtomicPtr::new(ptr::null_mut()) };
        Self { link, kind: cell::kind_of::<A>(), cell: Cell::free_static(generation) }
    }

    fn cell(&'static self) -> NonNull<CellHeader> {
        // With the provenance of the whole: the kind is found before the cell.
        // SAFETY: the offset is that of the field.
        unsafe { NonNull::from(self).cast::<u8>().add(CELL_OFFSET).cast() }
    }

    /// Starts an actor here, on one of `executor`'s mailboxes.
    ///
    /// # Errors
    /// [`SpawnError::NotFree`] if one lives here, or the state of one that has finished is still here, or one has ended that
    /// is still being cleared away: then it is free before long;
    /// [`SpawnError::UsedUp`] after 2^32 - 1 actors.
    pub fn start(&'static self, executor: &ExecutorHandle, actor: A) -> Result<Addr<A>, SpawnError<A>> {
        let here = PreemptGuard::new();
        let cell = self.cell();
        // SAFETY: the cell is static.
        let header = unsafe { cell.as_ref() };
        let free = header.word();
        let claimed = free.starting();
        if !matches!(free.life(), Some(Life::Free | Life::Destroyed)) {
            return Err(SpawnError::NotFree(actor));
        }
        if free.is_used_up() {
            return Err(SpawnError::UsedUp(actor));
        }
        if !header.claim(free, claimed) {
            return Err(SpawnError::NotFree(actor));
        }
        self.list();
        // SAFETY: the cell is of kind `A`, free, and ours since we claimed it. Not boxed, so there is memory.
        let _ = unsafe { cell::fill(cell, actor) };
        let shared = executor.shared();
        match spawn::attach(shared, shared.next_mailbox(), cell, claimed, &here) {
            Some(word) => Ok(Addr::new(cell, word)),
            None => {
                // SAFETY: filled above; still ours.
                let actor = unsafe { cell::take_state(cell) };
                header.set_word(free);
                Err(SpawnError::Stopped(actor))
            }
        }
    }

    /// Takes the state of the actor that has finished here, once.
    pub fn take(&'static self) -> Option<A> {
        let cell = self.cell();
        // SAFETY: the cell is static.
        let header = unsafe { cell.as_ref() };
        let finished = header.word();
        let claimed = finished.starting();
        if finished.life() != Some(Life::Finished) || !header.claim(finished, claimed) {
            return None;
        }
        // SAFETY: the cell is of kind `A` and holds the state of a finished actor, and is ours.
        let actor = unsafe { cell::take_state(cell) };
        let here = PreemptGuard::new();
        super::pool::give(cell, claimed, &here);
        Some(actor)
    }

    /// Puts it on the list of those that an executor looks through when it stops.
    fn list(&'static self) {
        let link = ptr::from_ref(self).cast::<Link>().cast_mut();
        // Relaxed: the caller has claimed the cell, so it is alone; what it does here is published below.
        if !self.link.listed.load(Ordering::Relaxed).is_null() {
            return;
        }
        self.link.listed.store(link, Ordering::Relaxed);
        let mut first = STARTED.load(Ordering::Relaxed);
        loop {
            self.link.next.store(first, Ordering::Relaxed);
            // Release: pairs with the acquire in `all_cells`. Nothing is ever removed, so there is no ABA.
            match STARTED.compare_exchange(first, link, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(other) => first = other,
            }
        }
    }
}

/// The cells of all static actors that were ever started.
pub(super) fn all_cells() -> impl Iterator<Item = NonNull<CellHeader>> {
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

const _: () = assert!(core::mem::offset_of!(StaticActor<u64>, cell) == CELL_OFFSET);
