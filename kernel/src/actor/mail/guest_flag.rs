//! Whether a mailbox is in a guest list: the list of a worker that is not its owner, but will see to it.
//!
//! The owner of a mailbox is idle. Whoever sends to it need not wake the owner: it may put the mailbox into the guest
//! list of the worker that is awake on its own core, the host. Several may want that at once, and a list has one link for
//! each mailbox; the flag makes one of them the one who does. The others leave it to the host that has the mailbox
//! already, and that is right because of this:
//!
//! ```text
//!   sender                           host
//!   ──────                           ────
//!   count the message                take the mailbox out of its list
//!   full barrier                     clear the flag
//!   claim the flag: was it set?      full barrier
//!   then leave it to that host       look for mail
//! ```
//!
//! With a full barrier on both sides either the claim finds the flag clear, or the host's look finds the mail.

use crate::arch::atomic::{AtomicBool, Ordering, const_fn};
use crate::arch::barrier;

/// The flag.
#[derive(Debug)]
pub struct GuestFlag(AtomicBool);

impl GuestFlag {
    const_fn! {
        /// In no list.
        pub fn new() -> Self {
            Self(AtomicBool::new(false))
        }
    }

    /// For who has made work and passed a full barrier since: whether the caller must put the thing into its list. If
    /// not, it is in somebody's, who will look.
    #[inline(always)]
    pub fn claim(&self) -> bool {
        // Relaxed first: while it stays set nothing need be written. AcqRel: the acquire pairs with the release in
        // `clear`, so that the thing's link, which the last host has read, is the caller's from now on.
        !self.0.load(Ordering::Relaxed) && !self.0.swap(true, Ordering::AcqRel)
    }

    /// The host has taken the thing out of its list, and will look for work after this.
    #[inline(always)]
    pub fn clear(&self) {
        // Release: pairs with the acquire in `claim`.
        self.0.store(false, Ordering::Release);
        // Pairs with the barrier that who makes work passes before `claim`.
        barrier::full();
    }

    /// The thing is in no list, for nobody uses it.
    pub fn reset(&self) {
        // Relaxed: published by what leads to the thing.
        self.0.store(false, Ordering::Relaxed);
    }

    /// Whether it is in a list. To rely on it, pass a full barrier before.
    #[inline(always)]
    pub fn is_set(&self) -> bool {
        // Relaxed: a hint, or ordered by the caller's barrier.
        self.0.load(Ordering::Relaxed)
    }
}

impl Default for GuestFlag {
    fn default() -> Self {
        Self::new()
    }
}
