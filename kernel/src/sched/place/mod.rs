//! Where runnable processes go, where they are taken from, and whom that wakes. Everything else calls this.

mod backlog;
pub(crate) mod enqueue;
pub(crate) mod global;
pub(crate) mod pick;
pub(crate) mod thieves;
pub(crate) mod urgent;
pub(crate) mod wake;
pub(crate) mod waker;
mod yield_now;

pub(crate) use backlog::{
    is_backlog, may_be_robbed, moves, note_none_waits, note_waiting, others_are_crowded,
};
pub use yield_now::{YieldNow, yield_now};
