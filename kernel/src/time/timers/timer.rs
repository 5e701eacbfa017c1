//! One timer: what its owner gives it, and its place in the heap and the list that it is in.
//!
//! It lies in memory of its owner's and is linked where it lies, so to arm one takes no memory.

use core::ptr::NonNull;
use core::task::Waker;

use super::owned::{self, OwnedTimers};
use super::state::TimerState;
use crate::queue::{HasNode, Node};

/// One timer. While in a core's queue, it belongs to that, under its lock.
pub(crate) struct Timer {
    /// Its place in the heap.
    pub node: Node<Timer>,
    /// Its state.
    pub state: TimerState,
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

// SAFETY: the node is a field that the heaps alone write, under their queue's lock.
unsafe impl HasNode for Timer {
    #[inline(always)]
    unsafe fn node(this: *mut Self) -> *mut Node<Self> {
        // SAFETY: by contract.
        unsafe { &raw mut (*this).node }
    }
}

impl Timer {
    pub(crate) const fn new(background: bool) -> Self {
        Self {
            node: Node::NONE,
            state: TimerState::new(),
            background,
            urgent: false,
            link: owned::Link::NONE,
            owner: None,
            waker: None,
        }
    }
}
