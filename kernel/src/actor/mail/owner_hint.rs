//! Whose a mailbox is: a number that senders read, kept true enough while thieves move the mailbox.
//!
//! A sender that makes an empty mailbox non-empty must wake the mailbox's worker if it sleeps. It finds the
//! worker through a number in the mailbox, which lags behind the table when the mailbox is stolen. The same
//! number says in which of its slots the worker should look; that is a hint only, for before a worker sleeps it
//! looks at all.
//!
//! ```text
//!   sender                     thief                          worker that goes to sleep
//!   ──────                     ─────                          ─────────────────────────
//!   count the message          swap the pointers              announce that it sleeps
//!   full barrier               store both owner numbers       full barrier
//!   read the owner number      full barrier                   look at its whole range
//!   wake that worker if it     look at the mailbox it gave:
//!   sleeps                     if there is mail, wake its worker
//! ```
//!
//! Of sender and thief, with a full barrier each, at least one sees the other's store. If the sender read an
//! old number, the thief sees the message: in the mailbox it gave, and wakes the worker; in the one it took,
//! at the latest when it looks before it sleeps. That look and the sender's wake-up exclude a lost wake-up in
//! the same way.
//!
//! Two thieves may move one mailbox shortly after one another and store their numbers in the wrong order. So
//! whoever has stored a number looks once more, after a full barrier, whether the slot still holds the mailbox,
//! and if not, finds where it is and stores again. The number that is left in the end was stored by somebody
//! who found it right afterwards. A mailbox that is in no slot is in the hands of a thief, which stores after
//! the swap.
//!
//! Here a mailbox is a thing, in a slot: whoever moves it says where it is and how it is found.

use crate::arch::atomic::{AtomicU32, Ordering};
use crate::arch::barrier;

/// The number.
#[derive(Debug)]
pub struct OwnerHint(AtomicU32);

impl OwnerHint {
    /// The owner is `owner`.
    pub fn new(owner: usize) -> Self {
        Self(AtomicU32::new(owner as u32))
    }

    /// Sets it while nobody moves the thing.
    pub fn reset(&self, owner: usize) {
        // Relaxed: published by what leads to the thing.
        self.0.store(owner as u32, Ordering::Relaxed);
    }

    /// The owner, as far as is known.
    #[inline(always)]
    pub fn get(&self) -> usize {
        // Relaxed: who must not read an old number passes a full barrier first.
        self.0.load(Ordering::Relaxed) as usize
    }

    /// The thing was put into `slot`. Returns its owner once the number is stored, a full barrier has passed,
    /// and the thing was found in its slot after that; `None` if a thief has it in hand, who will do the
    /// same.
    pub fn publish(
        &self,
        mut slot: usize,
        owner_of: impl Fn(usize) -> usize,
        is_in: impl Fn(usize) -> bool,
        find: impl Fn() -> Option<usize>,
    ) -> Option<usize> {
        loop {
            let owner = owner_of(slot);
            // Release: not before the swap that moved the thing, whose last store could be seen later.
            // An exchange with acquire: who overwrites another thief's number sees that thief's move below. In
            // the language's model a plain store does not, and the wrong number could be left for ever.
            self.0.swap(owner as u32, Ordering::AcqRel);
            // Pairs with the barrier in `after_work`, with that of whoever looks before it sleeps, and with
            // that of other thieves.
            barrier::full();
            if is_in(slot) {
                return Some(owner);
            }
            slot = find()?;
        }
    }

    /// The owner to wake, for who has just made work for the thing.
    #[inline(always)]
    pub fn after_work(&self) -> usize {
        // Pairs with the barrier in `publish`, and with the one that an owner passes before it sleeps.
        barrier::full();
        self.get()
    }
}
