//! Finding out that nothing is left to do, after the rule of the Sophie note.
//!
//! Work exists only in queues and in the hands of those who are not idle. Each core says that it is idle in a place
//! that every core can read. A core that leaves idleness takes that back, notes so here, and only then takes work. A
//! core that wants to know whether anything is left:
//!
//! 1. reads the epoch;
//! 2. sees everyone idle, and after that every queue empty;
//! 3. leaves idleness itself, which moves the epoch on by one;
//! 4. moves it on once more, if nobody else has. Only then was nothing left.
//!
//! A core that was not counted yet, because it enters only now, counts itself first and then acts as one that leaves
//! idleness. Noted before it is counted, it would be missed by a look that begins between the two.
//!
//! Work that the look at the queues missed, because it was taken meanwhile, was taken after its taker had moved the
//! epoch on. If that move came before step 4, step 4 fails. If it came after, the taker's move, which acquires, follows
//! step 4, which releases, and so follows the look too. The look therefore cannot have seen what the taker did later.

use crate::arch::atomic::{AtomicU64, Ordering, const_fn};
use crate::arch::barrier;

/// The epoch.
pub struct Quiescence(AtomicU64);

/// What came of a look.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Looked {
    /// Another core has, or will have, something to do; the one that looked is still idle.
    Busy,
    /// The core that looked has left idleness; whether nothing was left.
    Left(bool),
}

impl Quiescence {
    const_fn! {
        /// At the beginning.
        pub fn new() -> Self {
            Self(AtomicU64::new(0))
        }
    }

    /// The caller has left idleness, and has not taken any work yet.
    pub fn note_activity(&self) {
        // AcqRel: the acquire pairs with the release of the exchange in `look`, and keeps the taking of work after it.
        self.0.fetch_add(1, Ordering::AcqRel);
        // Not for the epoch: wakers must see that the core is not idle any more before it takes what they bring.
        barrier::full();
    }

    /// The caller takes part from now on, and has not taken any work yet. `count_me` makes it one of everyone.
    pub fn enter(&self, count_me: impl FnOnce()) {
        count_me();
        self.note_activity();
    }

    /// Looks. The caller is idle; `leave` takes that back and notes it, as everyone does.
    pub fn look(
        &self,
        everyone_is_idle: impl FnOnce() -> bool,
        any_work: impl FnOnce() -> bool,
        leave: impl FnOnce(),
    ) -> Looked {
        // Acquire: everything below is read after the epoch.
        let epoch = self.0.load(Ordering::Acquire);
        if !everyone_is_idle() || any_work() {
            return Looked::Busy;
        }
        // Its own leaving moves the epoch on once: another core that finds the same at the same time must not give a
        // verdict too.
        leave();
        // AcqRel: the release pairs with the acquire in `note_activity`, and keeps the looks above before it.
        let verdict = self.0.compare_exchange(epoch + 1, epoch + 2, Ordering::AcqRel, Ordering::Acquire);
        Looked::Left(verdict.is_ok())
    }
}

impl Default for Quiescence {
    fn default() -> Self {
        Self::new()
    }
}
