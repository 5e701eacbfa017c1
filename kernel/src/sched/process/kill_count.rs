//! How many processes were killed and have not ended: exact, so that nobody looks for them when none is left.
//!
//! Several may kill a process at once, while it ends by itself. Who kills counts before the kill can be seen, and once for all of them: that
//! says the process's mark. Whoever then finds that the process was killed and has ended takes the mark and counts down: the end finds the
//! kill in the word of the process, or the kill finds the end there, because both are single steps of that word. So a mark that was set is
//! taken once, at the end or after it.

use super::run_state::RunState;
use crate::arch::atomic::{AtomicBool, AtomicU32, Ordering, const_fn};

/// How many were killed and have not ended.
pub struct Unended(AtomicU32);

impl Unended {
    const_fn! {
        /// None.
        #[expect(clippy::new_without_default, reason = "made in a static only")]
        pub fn new() -> Self {
            Self(AtomicU32::new(0))
        }
    }

    /// One more. Before it can be found.
    pub fn begin(&self) {
        // Relaxed: who is told of a kill by an acquire sees that it was counted, and whoever counts down has seen that, too.
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// One of them has ended.
    pub fn end(&self) {
        // Release: pairs with the acquire in `none`, so that the end is seen there.
        self.0.fetch_sub(1, Ordering::Release);
    }

    /// Whether none is left of those that the caller was told of.
    pub fn none(&self) -> bool {
        // Acquire: as above.
        self.0.load(Ordering::Acquire) == 0
    }
}

/// Whether the kill of a process is counted.
pub struct KillCount(AtomicBool);

impl KillCount {
    /// It was not killed.
    #[expect(clippy::new_without_default, reason = "made in headers only")]
    #[inline(always)]
    pub fn new() -> Self {
        Self(AtomicBool::new(false))
    }

    /// Kills the process, whose word that is. Whether it has not ended.
    pub fn kill(&self, state: &RunState, unended: &Unended) -> bool {
        unended.begin();
        // AcqRel: whoever finds the mark set, here or in `take_back`, comes after the count; see `RunState::kill` for how the end finds it.
        if self.0.swap(true, Ordering::AcqRel) {
            unended.end();
        }
        let is_killed = state.kill();
        if !is_killed {
            self.take_back(unended);
        }
        is_killed
    }

    /// The process has ended, and its word says that it was killed.
    pub fn take_back(&self, unended: &Unended) {
        // AcqRel: as in `kill`.
        if self.0.swap(false, Ordering::AcqRel) {
            unended.end();
        }
    }
}
