//! Files: which mailboxes end with whom, so that a crash closes them at once.
//!
//! A block is filed under its owner from the moment when that one receives for the first time until the mailbox closes, has
//! another owner, or loses its last address. A crash looks through one folder of many. What it closes, it closes before
//! anybody is told of the crash, and it runs no destructor: what waits in the mailbox is dropped by the next sender, or with
//! the last address.
//!
//! One lock guards all that, and all changes of owners, which are rare. It comes before the lock of a block.

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

use super::owner::Owner;
use crate::sched::{self, ProcessRef};
use crate::stats;
use crate::sync::{Identity, PreemptGuard, SpinLock, watch_crashes};

const FOLDERS: usize = 64;

/// The folders, while they are locked.
pub(super) struct Files {
    first: [*mut Filed; FOLDERS],
    /// Whether this room is told of crashes: from before anything is filed.
    is_watching: bool,
}

// SAFETY: what is linked is used under the lock, from whatever core.
unsafe impl Send for Files {}

static FILES: SpinLock<Files> =
    SpinLock::new(Files { first: [ptr::null_mut(); FOLDERS], is_watching: false });

/// The link of a block, which is its first field.
pub(super) struct Filed {
    /// Closes the block, which stays alive at least as long as it is filed. Called under the lock.
    close: unsafe fn(NonNull<Self>) -> Remains,
    links: UnsafeCell<Links>,
}

struct Links {
    /// Under whom it is filed, if it is.
    owner: Option<Identity>,
    previous: *mut Filed,
    next: *mut Filed,
}

/// What a crash takes out of a block that it closes; to be dropped outside the lock.
pub(super) struct Remains {
    pub _owner: Option<Owner>,
    pub _waker: Option<ProcessRef>,
    /// Of the block, which stays.
    pub bytes: usize,
}

impl Filed {
    /// Not filed.
    pub(super) fn new(close: unsafe fn(NonNull<Self>) -> Remains) -> Self {
        let links = Links { owner: None, previous: ptr::null_mut(), next: ptr::null_mut() };
        Self { close, links: UnsafeCell::new(links) }
    }
}

// SAFETY: the links are used under the lock only.
unsafe impl Send for Filed {}
// SAFETY: as above.
unsafe impl Sync for Filed {}

fn folder(owner: Identity) -> usize {
    // Fibonacci hashing: headers and cells lie at regular distances.
    ((owner.place() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % FOLDERS
}

/// Does what changes a block's owner.
pub(super) fn change<R>(change: impl FnOnce(&mut Files) -> R) -> R {
    change(&mut FILES.lock())
}

impl Files {
    /// Files a block under `owner` and no other.
    ///
    /// # Safety
    /// The block stays where it is until it was taken out.
    pub(super) unsafe fn put(&mut self, filed: NonNull<Filed>, owner: Option<Identity>) {
        self.take_out(filed);
        let Some(owner) = owner else { return };
        if !self.is_watching {
            watch_crashes(crashed);
            self.is_watching = true;
        }
        let first = &mut self.first[folder(owner)];
        // SAFETY: under the lock; what is linked is alive.
        unsafe {
            *filed.as_ref().links.get() =
                Links { owner: Some(owner), previous: ptr::null_mut(), next: *first };
            if let Some(next) = first.as_ref() {
                (*next.links.get()).previous = filed.as_ptr();
            }
        }
        *first = filed.as_ptr();
    }

    /// Takes a block out, if it is filed.
    pub(super) fn take_out(&mut self, filed: NonNull<Filed>) {
        // SAFETY: under the lock; the block is the caller's, and what is linked is alive.
        unsafe {
            let links = &mut *filed.as_ref().links.get();
            let Some(owner) = links.owner else { return };
            match links.previous.as_ref() {
                Some(previous) => (*previous.links.get()).next = links.next,
                None => self.first[folder(owner)] = links.next,
            }
            if let Some(next) = links.next.as_ref() {
                (*next.links.get()).previous = links.previous;
            }
            links.owner = None;
        }
    }

    fn first_of(&self, owner: Identity) -> Option<NonNull<Filed>> {
        let mut next = self.first[folder(owner)];
        while let Some(filed) = NonNull::new(next) {
            // SAFETY: under the lock; what is linked is alive.
            let links = unsafe { &*filed.as_ref().links.get() };
            if links.owner == Some(owner) {
                return Some(filed);
            }
            next = links.next;
        }
        None
    }
}

/// `owner` has crashed: its mailboxes accept nothing any more.
fn crashed(owner: Identity) {
    while let Some(remains) = close_one(owner) {
        let _here = PreemptGuard::new();
        stats::core_here().crash_bytes_in_doubt.add(remains.bytes as u64);
    }
}

fn close_one(owner: Identity) -> Option<Remains> {
    change(|files| {
        let filed = files.first_of(owner)?;
        files.take_out(filed);
        // SAFETY: it was filed until now, under this lock.
        Some(unsafe { (filed.as_ref().close)(filed) })
    })
}

/// The process that a waker wakes, if it is the scheduler's own: such a one may be dropped anywhere.
pub(super) fn process_in(waker: &mut Option<core::task::Waker>) -> Option<ProcessRef> {
    let process = sched::process_of(waker.as_ref()?)?;
    *waker = None;
    Some(process)
}
