//! Whether an actor of a mailbox has ended, or was detached, since mail was last taken out of the mailbox's queue.
//!
//! A sender finds its actor attached while it holds the mailbox's lock, and writes. Nobody ends or detaches an attached actor but who
//! has the mailbox in hand, and nobody else takes mail out. So mail that is taken out is for actors that are attached still, unless one
//! ceased to be since mail was last taken out: what is sent after that was taken finds out by itself, because of the lock. Who ends or
//! detaches an actor says so here first, in one step with that: no mail is taken out between the two (model `checks::queued`; the whole is in
//! `hand/checks.rs`).

use crate::arch::atomic::{AtomicBool, Ordering, const_fn};

/// The flag.
///
/// Relaxed throughout: those who have the mailbox in hand, one after the other, are ordered by its processing flag. An activation that
/// ends an actor which was detached may set it beside them; nothing needs that.
#[derive(Debug)]
pub struct GoneFlag(AtomicBool);

impl GoneFlag {
    const_fn! {
        /// None has.
        pub fn new() -> Self {
            Self(AtomicBool::new(false))
        }
    }

    /// An actor of the mailbox is about to end, or to be detached.
    #[inline(always)]
    pub fn note(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether an actor has gone since mail was last taken out.
    #[inline(always)]
    pub fn is_noted(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Mail was taken out, by the caller, who has the mailbox in hand and holds its lock. Whether an actor has gone before.
    #[inline(always)]
    pub fn take(&self) -> bool {
        let has_gone = self.0.load(Ordering::Relaxed);
        self.0.store(false, Ordering::Relaxed);
        has_gone
    }
}

impl Default for GoneFlag {
    fn default() -> Self {
        Self::new()
    }
}
