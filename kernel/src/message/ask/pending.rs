//! Pending asks: which of them wait for whom, so that a crash fails them.
//!
//! An ask is listed before its request is sent, in the list that the hash of a place names, and is
//! taken out when its reply handle is used or dropped. A crash looks through one list.
//!
//! One that crashes between the listing and the sending is no trouble: the send then fails, or the
//! request is dropped with the other mail of the dead, and the handle in it says so.

use core::ptr::{self, NonNull};

use crate::sync::{ReferenceCount, SpinLock};

/// So many lists, each with a lock, share the load; a power of two.
const LISTS: usize = 64;

struct First(*mut PendingAsk);

// SAFETY: what is linked is used under the list's lock, from whatever core.
unsafe impl Send for First {}

static PENDING: [SpinLock<First>; LISTS] = [const { SpinLock::new(First(ptr::null_mut())) }; LISTS];

/// Who was asked: where it is, and which one it is of those that have been there.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Asked {
    place: usize,
    life: u64,
}

impl Asked {
    /// No two that exist at the same time have the same of both.
    pub(crate) const fn new(place: usize, life: u64) -> Self {
        Self { place, life }
    }

    fn list(self) -> &'static SpinLock<First> {
        // Fibonacci hashing: what is asked lies at regular distances.
        let hash = (self.place as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58;
        &PENDING[hash as usize % LISTS]
    }
}

/// The link of an ask's slot. All but the constant part is used under the list's lock.
pub(crate) struct PendingAsk {
    asked: Asked,
    /// Says that who was asked has crashed; consumes a reference.
    crashed: unsafe fn(NonNull<PendingAsk>),
    /// What keeps the slot.
    pub(crate) references: ReferenceCount,
    links: core::cell::UnsafeCell<Links>,
}

struct Links {
    previous: *mut PendingAsk,
    next: *mut PendingAsk,
    is_listed: bool,
}

impl PendingAsk {
    /// Not listed yet, with `references` references.
    pub(crate) fn new(asked: Asked, references: u32, crashed: unsafe fn(NonNull<Self>)) -> Self {
        let links = Links { previous: ptr::null_mut(), next: ptr::null_mut(), is_listed: false };
        Self {
            asked,
            crashed,
            references: ReferenceCount::new(references),
            links: core::cell::UnsafeCell::new(links),
        }
    }

    /// Lists an ask.
    ///
    /// # Safety
    /// It stays where it is until it was removed, and is not listed.
    pub(crate) unsafe fn insert(this: NonNull<Self>) {
        // SAFETY: by contract it is alive.
        let mut first = unsafe { this.as_ref() }.asked.list().lock();
        // SAFETY: under the lock; what is linked is alive.
        unsafe {
            let links = &mut *this.as_ref().links.get();
            links.next = first.0;
            links.is_listed = true;
            if let Some(next) = first.0.as_ref() {
                (*next.links.get()).previous = this.as_ptr();
            }
        }
        first.0 = this.as_ptr();
    }

    /// Takes it out, if it is listed.
    ///
    /// # Safety
    /// It is alive.
    pub(crate) unsafe fn remove(this: NonNull<Self>) {
        // SAFETY: by contract.
        let mut first = unsafe { this.as_ref() }.asked.list().lock();
        // SAFETY: under the lock.
        unsafe { unlink(&mut first, this) };
    }
}

/// # Safety
/// The caller holds the lock of the ask's list, whose first is `first`.
unsafe fn unlink(first: &mut First, ask: NonNull<PendingAsk>) {
    // SAFETY: under the lock; what is linked is alive. One reference to links at a time.
    unsafe {
        let links = ask.as_ref().links.get();
        if !(*links).is_listed {
            return;
        }
        (*links).is_listed = false;
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

/// One has crashed: whoever waits for its answer is told.
pub(crate) fn fail_all(asked: Asked) {
    let mut next = take_all(asked);
    while let Some(ask) = NonNull::new(next) {
        // SAFETY: taken with a reference of its own, which ends here; the link is read before that, and nobody
        // else uses the links of one that is not listed.
        unsafe {
            next = (*ask.as_ref().links.get()).next;
            // Not under the lock: it wakes.
            (ask.as_ref().crashed)(ask);
        }
    }
}

/// Whether anybody waits for an answer of one.
pub(crate) fn is_awaited(asked: Asked) -> bool {
    let first = asked.list().lock();
    let mut next = first.0;
    while let Some(ask) = NonNull::new(next) {
        // SAFETY: under the lock; what is linked is alive.
        let ask = unsafe { ask.as_ref() };
        if ask.asked == asked {
            return true;
        }
        // SAFETY: as above.
        next = unsafe { (*ask.links.get()).next };
    }
    false
}

/// Takes the asks of one out of their list, each with a reference, linked by `next`.
fn take_all(asked: Asked) -> *mut PendingAsk {
    let mut taken: *mut PendingAsk = ptr::null_mut();
    let mut first = asked.list().lock();
    let mut next = first.0;
    while let Some(ask) = NonNull::new(next) {
        // SAFETY: under the lock; what is linked is alive, as its reply's reference is given up only after it
        // was unlinked.
        unsafe {
            next = (*ask.as_ref().links.get()).next;
            if ask.as_ref().asked == asked {
                ask.as_ref().references.add();
                unlink(&mut first, ask);
                (*ask.as_ref().links.get()).next = taken;
                taken = ask.as_ptr();
            }
        }
    }
    taken
}
