//! Telling many: those that are not told where somebody ended, because that would take long there.

use super::lists::Taken;
use super::node::{Asked, Node};

/// So many are told where somebody ended, which is the core's own loop as a rule: some ten thousand instructions.
pub(super) const AT_ONCE: usize = 32;

/// Watches that were taken out of their list, and are to be told of one end. Dropped, it tells all that are left.
#[must_use = "dropped, it tells all at once"]
pub(crate) struct Rest {
    watches: Taken,
    exit_bits: u64,
}

// SAFETY: what was taken out of a list is nobody else's, and may be told from whatever core.
unsafe impl Send for Rest {}

impl Rest {
    pub(super) fn new(watches: Taken, exit_bits: u64) -> Self {
        Self { watches, exit_bits }
    }

    /// Tells so many. Whether some are left.
    #[inline(never)]
    pub(crate) fn tell(&mut self, most: usize) -> bool {
        for node in self.watches.by_ref().take(most) {
            // SAFETY: taken out of its list, with the link read before this.
            unsafe { Node::act(node, Asked::Tell(self.exit_bits)) };
        }
        !self.watches.is_empty()
    }
}

impl Drop for Rest {
    fn drop(&mut self) {
        self.tell(usize::MAX);
    }
}
