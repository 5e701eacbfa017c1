//! Files: which asks wait for whom, so that a crash fails them.
//!
//! A slot is filed before its request is sent, in the folder that the hash of the actor's cell names, and is
//! taken out when its reply handle is used or dropped. A crash looks through one folder.
//!
//! An actor that crashes between the filing and the sending is no trouble: the send then fails, or the
//! request is dropped with the other mail of the dead, and the handle in it says so.

use core::ptr::{self, NonNull};

use crate::actor::storage::{CellHeader, Word};
use crate::arch::atomic::{AtomicU32, Ordering};
use crate::sync::SpinLock;

/// So many locks share the load; a power of two.
const FOLDERS: usize = 64;

struct First(*mut Filed);

// SAFETY: what is linked is used under the folder's lock, from whatever core.
unsafe impl Send for First {}

static CABINET: [SpinLock<First>; FOLDERS] = [const { SpinLock::new(First(ptr::null_mut())) }; FOLDERS];

/// Under whom a slot is filed.
#[derive(Clone, Copy)]
pub(super) struct Folder {
    cell: NonNull<CellHeader>,
    word: Word,
}

impl Folder {
    /// That of an actor.
    pub(super) fn of(cell: NonNull<CellHeader>, word: Word) -> Self {
        Self { cell, word }
    }

    fn lock(cell: NonNull<CellHeader>) -> &'static SpinLock<First> {
        // Fibonacci hashing: cells lie at regular distances.
        let hash = (cell.addr().get() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        &CABINET[hash as usize % FOLDERS]
    }
}

/// The link of a slot. All but the constant part is used under the folder's lock.
pub(super) struct Filed {
    folder: Folder,
    /// Says that the actor has crashed; consumes a reference.
    crashed: unsafe fn(NonNull<Filed>),
    /// What keeps the slot.
    pub(super) references: AtomicU32,
    links: core::cell::UnsafeCell<Links>,
}

struct Links {
    previous: *mut Filed,
    next: *mut Filed,
    is_filed: bool,
}

impl Filed {
    /// Not filed yet, with `references` references.
    pub(super) fn new(folder: Folder, references: u32, crashed: unsafe fn(NonNull<Self>)) -> Self {
        let links = Links { previous: ptr::null_mut(), next: ptr::null_mut(), is_filed: false };
        Self {
            folder,
            crashed,
            references: AtomicU32::new(references),
            links: core::cell::UnsafeCell::new(links),
        }
    }

    /// Files a slot.
    ///
    /// # Safety
    /// It stays where it is until it was removed, and is not filed.
    pub(super) unsafe fn insert(this: NonNull<Self>) {
        // SAFETY: by contract it is alive.
        let mut first = Folder::lock(unsafe { this.as_ref() }.folder.cell).lock();
        // SAFETY: under the lock; what is linked is alive.
        unsafe {
            let links = &mut *this.as_ref().links.get();
            links.next = first.0;
            links.is_filed = true;
            if let Some(next) = first.0.as_ref() {
                (*next.links.get()).previous = this.as_ptr();
            }
        }
        first.0 = this.as_ptr();
    }

    /// Takes a slot out, if it is filed.
    ///
    /// # Safety
    /// It is alive.
    pub(super) unsafe fn remove(this: NonNull<Self>) {
        // SAFETY: by contract.
        let mut first = Folder::lock(unsafe { this.as_ref() }.folder.cell).lock();
        // SAFETY: under the lock.
        unsafe { unlink(&mut first, this) };
    }
}

/// # Safety
/// The caller holds the lock of the slot's folder, whose first is `first`.
unsafe fn unlink(first: &mut First, filed: NonNull<Filed>) {
    // SAFETY: under the lock; what is linked is alive. One reference to links at a time.
    unsafe {
        let links = filed.as_ref().links.get();
        if !(*links).is_filed {
            return;
        }
        (*links).is_filed = false;
        let (previous, next) = ((*links).previous, (*links).next);
        match previous.as_ref() {
            Some(previous) => (*previous.links.get()).next = next,
            None => first.0 = next,
        }
        if let Some(next) = next.as_ref() {
            (*next.links.get()).previous = previous;
        }
        (*links).previous = ptr::null_mut();
        (*links).next = ptr::null_mut();
    }
}

/// An actor has crashed: whoever waits for its answer is told.
pub(in crate::actor) fn crashed(cell: NonNull<CellHeader>, word: Word) {
    let mut next = take_all(cell, word);
    while let Some(filed) = NonNull::new(next) {
        // SAFETY: taken with a reference of its own, which ends here; the link is read before that, and nobody
        // else uses the links of a slot that is not filed.
        unsafe {
            next = (*filed.as_ref().links.get()).next;
            // Not under the lock: it wakes.
            (filed.as_ref().crashed)(filed);
        }
    }
}

/// Takes the actor's slots out of their folder, each with a reference, linked by `next`.
fn take_all(cell: NonNull<CellHeader>, word: Word) -> *mut Filed {
    let mut taken: *mut Filed = ptr::null_mut();
    let mut first = Folder::lock(cell).lock();
    let mut next = first.0;
    while let Some(filed) = NonNull::new(next) {
        // SAFETY: under the lock; what is linked is alive, as its reply's reference is given up only after it
        // was unlinked.
        unsafe {
            next = (*filed.as_ref().links.get()).next;
            let folder = filed.as_ref().folder;
            if folder.cell == cell && (folder.word == word || word.is_same_actor(folder.word)) {
                // Relaxed: made from a reference that exists.
                filed.as_ref().references.fetch_add(1, Ordering::Relaxed);
                unlink(&mut first, filed);
                (*filed.as_ref().links.get()).next = taken;
                taken = filed.as_ptr();
            }
        }
    }
    taken
}
