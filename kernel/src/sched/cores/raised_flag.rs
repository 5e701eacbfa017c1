//! Whether something that interrupts raise waits in a core's list.
//!
//! It may be raised on several cores at once, and has one link: the flag makes one of those who raise it the one who puts it into a
//! list, that of its own core. The others leave it to that core's loop:
//!
//! ```text
//!   who raises it                       the loop
//!   ─────────────                       ────────
//!   set the flag: was it set?           take it out of the list
//!   no: put it into the list            clear the flag
//!   yes: leave it to the loop           do what it is for
//! ```
//!
//! Both change the flag by an exchange. So of what was raised before the clearing the loop sees all that was written before, and does
//! what it is for afterwards; and what is raised after the clearing puts it into a list again, whose link the loop has read by then.

use crate::arch::atomic::{AtomicBool, Ordering, const_fn};

/// The flag.
pub struct RaisedFlag(AtomicBool);

impl RaisedFlag {
    const_fn! {
        /// In no list.
        pub fn new() -> Self {
            Self(AtomicBool::new(false))
        }
    }

    /// It is raised. Whether the caller must put it into its list; if not, it is in one.
    pub fn set(&self) -> bool {
        // AcqRel: the acquire pairs with the release in `clear`, so that the link is the caller's from now on; the release with the
        // acquire there, so that the loop sees what was written before this, though another has put it into the list.
        !self.0.swap(true, Ordering::AcqRel)
    }

    /// It was taken out of its list, and what it is for is done after this.
    pub fn clear(&self) {
        // AcqRel: see `set`.
        self.0.swap(false, Ordering::AcqRel);
    }
}

impl Default for RaisedFlag {
    fn default() -> Self {
        Self::new()
    }
}
