//! An actor that is held aside for a while: whoever meets it then puts what was for it on a side queue, in order.
//!
//! The activation that holds it aside empties the queue and then *re-attaches* it. The word in its cell says whether it is
//! attached. It changes to and from detached under the side queue's lock only; whoever finds it attached, without the
//! lock, may use it at once. So that nothing is lost and nothing overtakes:
//!
//! - whoever did not find it attached looks again under the lock before it queues anything ([`look`]);
//! - it is re-attached only when the queue is found empty under that same lock ([`reattach`]).

use crate::actor::storage::word_cell::WordCell;

/// What was found under the lock.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Found {
    /// It is attached by now: nothing is queued, it can be used.
    Attached,
    /// It is held aside: to the queue.
    Detached,
    /// It is gone.
    Other,
}

/// Looks again. The caller holds the side queue's lock, and `is_attached` and `is_same` say of a word whether it is that
/// thing's while it is attached, and at all.
pub fn look(cell: &WordCell, is_attached: impl Fn(u64) -> bool, is_same: impl Fn(u64) -> bool) -> Found {
    let word = cell.get();
    if is_attached(word) {
        Found::Attached
    } else if is_same(word) {
        Found::Detached
    } else {
        Found::Other
    }
}

/// Attaches it again if nothing waits. The caller holds the side queue's lock, and has the thing aside.
pub fn reattach(cell: &WordCell, attached: u64, is_empty: bool) -> bool {
    if is_empty {
        // The release in it hands the thing over.
        cell.set(attached);
    }
    is_empty
}
