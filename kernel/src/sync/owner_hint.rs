//! A number that says who has a thing, kept true enough while thieves move the thing.
//!
//! `actor/owner.rs` has the protocol in a drawing; this is its part without mailboxes and tables. Who moved
//! the thing stores the number, passes a full barrier, and looks whether the thing is still where it put it;
//! who makes work for the thing passes a full barrier before it reads the number.

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
