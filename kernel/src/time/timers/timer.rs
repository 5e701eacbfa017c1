//! One timer: what its owner gives it, and its place in the heap and the list that it is in.
//!
//! It lies in memory of its owner's and is linked where it lies, so to arm one takes no memory.

use core::ptr::NonNull;
use core::task::Waker;

use super::heap;
use super::owned::{self, OwnedTimers};

/// The state of a timer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum State {
    /// In no queue.
    Idle,
    /// In a queue.
    Armed,
    /// Its time has come; it is in no queue any more.
    Fired,
}

/// One timer. While in a core's queue, it belongs to that, under its lock.
pub(crate) struct Timer {
    /// Its place in the heap.
    pub node: heap::Node,
    /// Its state.
    pub state: State,
    /// Whether it does not count as work.
    pub background: bool,
    /// Whether it fires before those that are not, because it wakes what is `Max` or `High`. Not changed while armed.
    pub urgent: bool,
    /// Its place in the list of the process that it belongs to.
    pub link: owned::Link,
    /// That list. Changed together with the waker, which keeps the process alive.
    pub owner: Option<NonNull<OwnedTimers>>,
    /// Who is woken.
    pub waker: Option<Waker>,
}

impl Timer {
    pub(crate) const fn new(background: bool) -> Self {
        Self {
            node: heap::Node::NONE,
            state: State::Idle,
            background,
            urgent: false,
            link: owned::Link::NONE,
            owner: None,
            waker: None,
        }
    }
}
