//! The directory: every mailbox by its number, for addresses that carry only that.
//!
//! Mailboxes are made when an executor needs more than are free, kept when it stops, and used again by the
//! next: an old address always finds a mailbox, if only a closed one or another's. That is safe, because
//! a sender checks the actor's word first, and again on delivery.

use alloc::boxed::Box;
use core::mem::MaybeUninit;
use core::ptr;

use super::mailbox::{FIRST_SEGMENT_BYTES, Mailbox};
use super::segment::Segment;
use crate::actor::storage::MailboxIndex;
use crate::arch::atomic::{AtomicPtr, Ordering};
use crate::mem;
use crate::sync::SpinLock;

/// The most mailboxes of all executors together.
pub(crate) const CAPACITY: usize = 4096;

static MAILBOXES: [AtomicPtr<Mailbox>; CAPACITY] = [const { AtomicPtr::new(ptr::null_mut()) }; CAPACITY];

struct Free {
    /// Numbers given back, as a stack.
    indices: [u16; CAPACITY],
    count: usize,
    /// Numbers never used begin here.
    unused: usize,
}

static FREE: SpinLock<Free> = SpinLock::new(Free { indices: [0; CAPACITY], count: 0, unused: 0 });

/// The mailbox with this number, which came from an address.
#[inline(always)]
pub(crate) fn get(index: MailboxIndex) -> &'static Mailbox {
    // Relaxed: whoever has an address has synchronised with the spawn that made it.
    let mailbox = MAILBOXES[index.get() as usize % CAPACITY].load(Ordering::Relaxed);
    debug_assert!(!mailbox.is_null(), "an address names a mailbox that was never made");
    // SAFETY: mailboxes are never freed, and an address is made with a number that is in use.
    unsafe { &*mailbox }
}

/// Why there is no mailbox to be had.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum TakeError {
    /// The executors that exist have them all.
    AllInUse,
    /// No memory for another.
    OutOfMemory,
}

impl Free {
    /// A mailbox that was given back.
    fn pop(&mut self) -> Option<&'static Mailbox> {
        self.count = self.count.checked_sub(1)?;
        Some(get(MailboxIndex::from_bits(self.indices[self.count])))
    }
}

/// A closed mailbox to open.
pub(crate) fn take() -> Result<&'static Mailbox, TakeError> {
    let mut free = FREE.lock();
    if let Some(mailbox) = free.pop() {
        return Ok(mailbox);
    }
    if free.unused == CAPACITY {
        return Err(TakeError::AllInUse);
    }
    drop(free);
    // Not under the lock, which disables preemption: memory may have to be fetched from far.
    let segment = Segment::new(FIRST_SEGMENT_BYTES).ok_or(TakeError::OutOfMemory)?;
    let Ok(room) = mem::kernel_box(MaybeUninit::<Mailbox>::uninit()) else {
        // SAFETY: just made, and empty.
        unsafe { Segment::free(segment) };
        return Err(TakeError::OutOfMemory);
    };
    let mut free = FREE.lock();
    let given_back = free.pop();
    if given_back.is_some() || free.unused == CAPACITY {
        drop(free);
        // SAFETY: as above.
        unsafe { Segment::free(segment) };
        return given_back.ok_or(TakeError::AllInUse);
    }
    let index = MailboxIndex::from_bits(free.unused as u16);
    let mailbox: &'static Mailbox = Box::leak(Box::write(room, Mailbox::new(index, segment)));
    MAILBOXES[free.unused].store(ptr::from_ref(mailbox).cast_mut(), Ordering::Relaxed);
    free.unused += 1;
    Ok(mailbox)
}

/// Every mailbox that was ever made: those of executors that run, and those that wait for one.
pub(crate) fn all() -> impl Iterator<Item = &'static Mailbox> {
    // The lock publishes what was made under it.
    let made = FREE.lock().unused;
    (0..made).map(|number| get(MailboxIndex::from_bits(number as u16)))
}

/// Takes back a mailbox that is closed and empty.
pub(crate) fn give(mailbox: &'static Mailbox) {
    mailbox.forget_runner();
    let mut free = FREE.lock();
    let count = free.count;
    free.indices[count] = mailbox.index().get();
    free.count += 1;
}
