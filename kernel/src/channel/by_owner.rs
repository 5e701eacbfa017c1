//! Mailboxes by owner: which end with whom, so that a crash closes them at once.
//!
//! A block is listed under its owner from the moment when that one receives for the first time until the mailbox closes,
//! has another owner, or loses its last address. A crash looks through one list of many. What it closes, it closes before
//! anybody is told of the crash, and it runs no destructor (whoever waits for an answer is told): what waits in the mailbox is dropped by the next sender, or
//! with the last address.
//!
//! One lock guards all that, and all changes of owners, which are rare. It comes before the lock of a block.

use core::cell::UnsafeCell;
use core::ptr::{self, NonNull};

use spin::Once;

use super::owner::Owner;
use crate::message::ask::{Asked, pending};
use crate::sched::{self, ProcessRef};
use crate::stats;
use crate::sync::{Identity, PreemptGuard, SpinLock, watch_crashes};

const LISTS: usize = 64;

/// The lists, while they are locked.
pub(super) struct ByOwner {
    first: [*mut OwnerLink; LISTS],
    /// Whether this room is told of crashes: from before anything is listed.
    is_watching: bool,
}

// SAFETY: what is linked is used under the lock, from whatever core.
unsafe impl Send for ByOwner {}

static BY_OWNER: SpinLock<ByOwner> =
    SpinLock::new(ByOwner { first: [ptr::null_mut(); LISTS], is_watching: false });

/// The link of a block, which is its first field.
pub(super) struct OwnerLink {
    acts: &'static Acts,
    links: UnsafeCell<Links>,
}

/// What is done with a block that is listed, and therefore alive. Called under the lock.
pub(super) struct Acts {
    /// Closes it.
    pub close: unsafe fn(NonNull<OwnerLink>) -> Remains,
    /// How many messages wait in it.
    pub waiting: unsafe fn(NonNull<OwnerLink>) -> usize,
}

struct Links {
    /// Under whom it is listed, if it is.
    owner: Option<Identity>,
    previous: *mut OwnerLink,
    next: *mut OwnerLink,
}

/// What a crash takes out of a block that it closes; to be dropped outside the lock.
pub(super) struct Remains {
    pub _owner: Option<Owner>,
    pub _waker: Option<ProcessRef>,
    /// Under what those are listed who have asked its owner.
    pub asked: Asked,
    /// Of the block, which stays.
    pub bytes: usize,
}

impl OwnerLink {
    /// Not listed.
    pub(super) fn new(acts: &'static Acts) -> Self {
        let links = Links { owner: None, previous: ptr::null_mut(), next: ptr::null_mut() };
        Self { acts, links: UnsafeCell::new(links) }
    }
}

// SAFETY: the links are used under the lock only.
unsafe impl Send for OwnerLink {}
// SAFETY: as above.
unsafe impl Sync for OwnerLink {}

fn list_of(owner: Identity) -> usize {
    // Fibonacci hashing: headers and cells lie at regular distances.
    ((owner.place() as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 58) as usize % LISTS
}

/// Does what changes a block's owner.
pub(super) fn change<R>(change: impl FnOnce(&mut ByOwner) -> R) -> R {
    change(&mut BY_OWNER.lock())
}

impl ByOwner {
    /// Lists a block under `owner` and no other.
    ///
    /// # Safety
    /// The block stays where it is until it was taken out.
    pub(super) unsafe fn put(&mut self, link: NonNull<OwnerLink>, owner: Option<Identity>) {
        self.take_out(link);
        let Some(owner) = owner else { return };
        if !self.is_watching {
            watch_crashes(crashed);
            USED.call_once(|| look_for as fn(&ProcessRef) -> usize);
            self.is_watching = true;
        }
        let first = &mut self.first[list_of(owner)];
        // SAFETY: under the lock; what is linked is alive.
        unsafe {
            *link.as_ref().links.get() =
                Links { owner: Some(owner), previous: ptr::null_mut(), next: *first };
            if let Some(next) = first.as_ref() {
                (*next.links.get()).previous = link.as_ptr();
            }
        }
        *first = link.as_ptr();
    }

    /// Takes a block out, if it is listed.
    pub(super) fn take_out(&mut self, link: NonNull<OwnerLink>) {
        // SAFETY: under the lock; the block is the caller's, and what is linked is alive.
        unsafe {
            let links = &mut *link.as_ref().links.get();
            let Some(owner) = links.owner else { return };
            match links.previous.as_ref() {
                Some(previous) => (*previous.links.get()).next = links.next,
                None => self.first[list_of(owner)] = links.next,
            }
            if let Some(next) = links.next.as_ref() {
                (*next.links.get()).previous = links.previous;
            }
            links.owner = None;
        }
    }

    fn first_of(&self, owner: Identity) -> Option<NonNull<OwnerLink>> {
        let mut next = self.first[list_of(owner)];
        while let Some(link) = NonNull::new(next) {
            // SAFETY: under the lock; what is linked is alive.
            let links = unsafe { &*link.as_ref().links.get() };
            if links.owner == Some(owner) {
                return Some(link);
            }
            next = links.next;
        }
        None
    }
}

/// `owner` has crashed: its mailboxes accept nothing any more.
fn crashed(owner: Identity) {
    while let Some(remains) = close_one(owner) {
        // Not under the lock: it wakes.
        pending::fail_all(remains.asked);
        let _here = PreemptGuard::new();
        stats::core_here().crash_bytes_in_doubt.add(remains.bytes as u64);
    }
}

fn close_one(owner: Identity) -> Option<Remains> {
    change(|by_owner| {
        let link = by_owner.first_of(owner)?;
        by_owner.take_out(link);
        // SAFETY: it was listed until now, under this lock.
        Some(unsafe { (link.as_ref().acts.close)(link) })
    })
}

/// How many messages wait for a process in all its mailboxes: those from which it has received last, and which somebody can send to.
/// Looks at the mailboxes of one in 64 owners, with preemption disabled.
///
/// ```
/// # use magpie::sched;
/// use magpie::channel::{ProcessMailbox, waiting_for};
/// # sched::run_on_threads(2, 1, async {
/// let mut mailbox = ProcessMailbox::<u32>::new(10)?;
/// let address = mailbox.address();
/// address.send(1)?.send(2)?;
/// mailbox.receive().await;
/// let own = sched::current_process().ok_or("no process runs")?;
/// assert_eq!(waiting_for(&own), 1);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// # }).unwrap().unwrap();
/// ```
pub fn waiting_for(process: &ProcessRef) -> usize {
    USED.get().map_or(0, |waiting_for| waiting_for(process))
}

/// How that is found, once a process has received: an image in which none does has nothing of it.
static USED: Once<fn(&ProcessRef) -> usize> = Once::new();

fn look_for(process: &ProcessRef) -> usize {
    let owner = Identity::Process(process.id());
    let by_owner = BY_OWNER.lock();
    let mut waiting = 0;
    let mut next = by_owner.first[list_of(owner)];
    while let Some(link) = NonNull::new(next) {
        // SAFETY: under the lock; what is linked is alive.
        unsafe {
            let links = &*link.as_ref().links.get();
            if links.owner == Some(owner) {
                waiting += (link.as_ref().acts.waiting)(link);
            }
            next = links.next;
        }
    }
    waiting
}

/// The process that a waker wakes, if it is the scheduler's own: such a one may be dropped anywhere.
pub(super) fn process_in(waker: &mut Option<core::task::Waker>) -> Option<ProcessRef> {
    let process = sched::process_of(waker.as_ref()?)?;
    *waker = None;
    Some(process)
}
