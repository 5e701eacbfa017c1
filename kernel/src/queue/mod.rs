//! Queues that carry pointers between cores.
//!
//! - [`Deque`]: what a core enqueues for itself and others may steal from; bounded.
//! - [`Overflow`]: where the owner puts what the deque has no room for; unbounded, locked.
//! - [`Inbox`]: what other cores enqueue for a core; unbounded, lock-free, drained whole by anybody.
//! - [`OwnList`]: what a core enqueues for itself and no other may take; unbounded, without a lock.
//! - [`Heap`]: what leaves by a deadline, the earliest first; unbounded, under a lock of its owner's.
//! - [`AppendOnly`]: what is never removed, to be gone through by anybody.
//!
//! None of them owns what it carries, allocates, or drops anything: an item belongs to the queue from the
//! push to the pop, and to whoever holds the pointer otherwise.

mod append_only;
mod deque;
mod heap;
mod inbox;
mod linked;
mod overflow;
mod own_list;

pub use append_only::AppendOnly;
pub use deque::{Corrupted, Deque, Stolen};
pub use heap::{HasNode, Heap, Node};
pub use inbox::Inbox;
pub use linked::{Chain, Linked};
pub use overflow::Overflow;
pub use own_list::OwnList;
