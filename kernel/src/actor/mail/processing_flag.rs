//! Whether a worker is handling a batch of a mailbox, and what its actors did is not handed over yet.
//!
//! Several workers may try to gulp, all under the mailbox's lock; the one that does puts the mailbox down *without* the
//! lock, when it has handled its batch. So the lock alone does not hand over what the actors did: the flag does.
//!
//! Whoever sends to a mailbox that is being processed need not tell anyone: its worker looks for mail after putting it
//! down. Each side writes one thing, passes a full barrier, and reads the other's, so at least one sees the other.

use crate::arch::atomic::{AtomicBool, Ordering, const_fn};
use crate::arch::barrier;

/// The flag.
#[derive(Debug)]
pub struct ProcessingFlag(AtomicBool);

impl ProcessingFlag {
    const_fn! {
        /// Nobody has it.
        pub fn new() -> Self {
            Self(AtomicBool::new(false))
        }
    }

    /// Whether the caller, who holds the lock, may take it. What was done before it was put down is then seen.
    #[inline(always)]
    pub fn is_free(&self) -> bool {
        // Acquire: pairs with the release in `put_down`.
        !self.0.load(Ordering::Acquire)
    }

    /// Takes it. The caller holds the lock, and has found it free under it.
    #[inline(always)]
    pub fn take(&self) {
        // Relaxed: read under the lock by others who want it.
        self.0.store(true, Ordering::Relaxed);
    }

    /// Puts it down; the lock is not needed. The caller then looks whether there is work for the thing, and if so
    /// tells whoever should do it.
    #[inline(always)]
    pub fn put_down(&self) {
        // Release: hands over what was done; pairs with the acquire in `is_free`.
        self.0.store(false, Ordering::Release);
        // Pairs with the barrier that whoever makes work passes before `is_left_to_holder`, and with that of whoever
        // looks before it sleeps.
        barrier::full();
    }

    /// For who has made work and passed a full barrier since: whether somebody has the thing in hand, who will look
    /// after putting it down.
    #[inline(always)]
    pub fn is_left_to_holder(&self) -> bool {
        // Relaxed: ordered by the barriers on both sides.
        self.0.load(Ordering::Relaxed)
    }

    /// Whether somebody has it; may be old.
    #[inline(always)]
    pub fn hint(&self) -> bool {
        // Relaxed: a hint.
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for ProcessingFlag {
    fn default() -> Self {
        Self::new()
    }
}
